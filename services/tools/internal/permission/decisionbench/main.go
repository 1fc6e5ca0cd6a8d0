// Command decisionbench measures decisions on a shell command of five parts, with a profile
// of 100 rules, two filters and 50 grants, against a plain parse of the command. `make bench`
// runs it and it prints one JSON object. It is a separate program because the permission
// engine is internal to the tools service.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fairlead/fairlead/services/tools/internal/permission"
)

// result is what is printed. Times are in nanoseconds.
type result struct {
	Rules, Filters, Grants int
	// Allowed are decisions by the rules, Granted those that a grant answers, Parsed plain
	// parses of the command.
	Allowed, Granted, Parsed []time.Duration
}

const (
	allowed = `git fetch origin && git log --oneline -5 | ls -l; go test ./internal/permission -run 'TestX' && go vet ./...`
	granted = `git fetch origin && git log --oneline -5 | ls -l; go test ./internal/permission -run 'TestX' && git push origin main`
)

func main() {
	rounds := flag.Int("rounds", 20_000, "how often to measure")
	flag.Parse()
	if err := run(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, "decisionbench:", err)
		os.Exit(1)
	}
}

func run(rounds int) error {
	p, r, err := policy()
	if err != nil {
		return err
	}
	out := result{Rules: len(r.Allow) + len(r.Ask) + len(r.Deny), Filters: len(p.Filters), Grants: len(p.Grants)}
	decide := func(command string) (time.Duration, error) {
		q := permission.Request{Tool: "Bash", Command: command}
		begun := time.Now()
		d := p.Decide(q)
		took := time.Since(begun)
		if d.Kind != permission.Allow {
			return 0, fmt.Errorf("%q: %s", command, d.Rule)
		}
		return took, nil
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	for range rounds {
		for command, times := range map[string]*[]time.Duration{allowed: &out.Allowed, granted: &out.Granted} {
			took, err := decide(command)
			if err != nil {
				return err
			}
			*times = append(*times, took)
		}
		begun := time.Now()
		if _, err := parser.Parse(strings.NewReader(allowed), ""); err != nil {
			return err
		}
		out.Parsed = append(out.Parsed, time.Since(begun))
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// policy has a profile with 100 rules, two filters and 50 grants.
func policy() (*permission.Policy, permission.Rules, error) {
	r := permission.Rules{Allow: []string{"Bash(git *)", "Bash(go *)", "Bash(ls *)", "Read", "Grep"}, Ask: []string{"Bash(git push *)"}}
	for i := range 60 {
		r.Allow = append(r.Allow, fmt.Sprintf("Bash(tool%d sub *)", i))
	}
	for i := range 15 {
		r.Ask = append(r.Ask, fmt.Sprintf("Bash(deploy%d *)", i))
	}
	for i := range 19 {
		r.Deny = append(r.Deny, fmt.Sprintf("Bash(forbidden%d *)", i))
	}
	profile, err := permission.Compile("bench", r)
	if err != nil {
		return nil, r, err
	}
	p := permission.Of(profile)
	for _, f := range []permission.Rules{
		{Deny: []string{"Bash(curl *)", "Bash(wget *)", "Read(./secret/**)"}, Ask: []string{"Bash(make *)"}},
		{Deny: []string{"Bash(rm -rf *)"}, DisabledTools: []string{"Write"}},
	} {
		made, faults := permission.CompileFilter(f)
		if len(faults) > 0 {
			return nil, r, faults[0]
		}
		p.Filters = append(p.Filters, made)
	}
	for i := range 50 {
		text := fmt.Sprintf("Bash(granted%d *)", i)
		if i == 49 {
			text = "Bash(git push *)"
		}
		g, err := permission.NewGrant("Bash", text, "ann always")
		if err != nil {
			return nil, r, err
		}
		p.Grants = append(p.Grants, g)
	}
	return p, r, nil
}
