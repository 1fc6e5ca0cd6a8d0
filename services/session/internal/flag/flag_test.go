package flag

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/session/internal/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var both = []string{agent.Native, agent.ClaudeCodeCLI}

// of opens flags whose file has a text.
func of(t *testing.T, text string) (f *Flags, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "flags.json")
	write(t, file, text)
	f, err := Open(t.Context(), Config{File: file}, both, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// example is the file of docs/runtimes.md.
func example(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/runtimes.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n```json\n(.*?)\n```").FindSubmatch(page)
	if m == nil {
		t.Fatal("docs/runtimes.md has no example of flags")
	}
	return string(m[1])
}

func TestTheExampleOfThePageDecides(t *testing.T) {
	f, _ := of(t, example(t))
	for name, c := range map[string]struct {
		subject Subject
		want    string // the runtime, whether it is alone, and the flags
	}{
		"a tenant":             {Subject{Tenant: "acme", User: "ann", Agent: "coder"}, "claude-code false [runtime=cli TARGETING_MATCH claude-code-keep-alive=on STATIC]"},
		"a user":               {Subject{Tenant: "other", User: "ben", Agent: "coder"}, "native false [runtime=native TARGETING_MATCH]"},
		"another agent":        {Subject{Tenant: "other", User: "ann", Agent: "writer", Runtime: "claude-code"}, "claude-code false [runtime=agent STATIC claude-code-keep-alive=on STATIC]"},
		"another native agent": {Subject{Tenant: "other", User: "ann", Agent: "writer"}, "native false [runtime=agent STATIC]"},
	} {
		t.Run(name, func(t *testing.T) {
			c.subject.Session = "s1"
			if c.subject.Runtime == "" {
				c.subject.Runtime = agent.Native
			}
			d := f.Decide(t.Context(), c.subject)
			var flags []string
			for _, x := range d.Flags {
				flags = append(flags, x.Flag+"="+x.Variant+" "+strings.Replace(x.Reason, "DEFAULT", "STATIC", 1))
			}
			if got := fmt.Sprint(d.Runtime, " ", d.Alone, " ", flags); got != c.want {
				t.Errorf("decided %s, not %s", got, c.want)
			}
		})
	}
	shares := map[string]int{}
	for i := range 2000 {
		s := Subject{Tenant: "other", User: "ann", Agent: "coder", Session: fmt.Sprintf("s%d", i), Runtime: agent.Native}
		r := f.Decide(t.Context(), s).Runtime
		shares[r]++
		if again := f.Decide(t.Context(), s).Runtime; again != r {
			t.Fatalf("session %s has %s and then %s", s.Session, r, again)
		}
	}
	if n := shares[agent.ClaudeCodeCLI]; n < 150 || n > 250 { // 10 % of 2,000, and seven standard deviations
		t.Errorf("of 2,000 sessions %v", shares)
	}
}

func TestASharePartsSessionsAsItGrows(t *testing.T) {
	at := func(share int) map[string]bool {
		f, _ := of(t, fmt.Sprintf(`{"flags": {"runtime": {"state": "ENABLED", "variants": {"cli": "claude-code", "native": "native"},
			"targeting": {"fractional": [["cli", %d], ["native", %d]]}}}}`, share, 100-share))
		in := map[string]bool{}
		for i := range 1000 {
			s := fmt.Sprintf("s%d", i)
			if f.Decide(t.Context(), Subject{Session: s, Runtime: agent.Native}).Runtime == agent.ClaudeCodeCLI {
				in[s] = true
			}
		}
		return in
	}
	small, large := at(10), at(50)
	if len(small) < 50 || len(large) < 400 || len(large) > 600 || len(at(0)) != 0 || len(at(100)) != 1000 {
		t.Fatalf("%d and %d of 1,000 sessions", len(small), len(large))
	}
	for s := range small {
		if !large[s] {
			t.Errorf("session %s leaves the share as it grows", s)
		}
	}
}

const keep = `{"flags": {"claude-code-keep-alive": {"state": "%s", "variants": {"on": true, "off": false}, "defaultVariant": "off",
	"targeting": {"if": [{"starts_with": [{"var": "user"}, "a"]}, "on"]}}}}`

func TestAFlagMayBeDisabledAndHaveNoOpinion(t *testing.T) {
	cli := Subject{User: "ben", Session: "s", Runtime: agent.ClaudeCodeCLI}
	on, _ := of(t, fmt.Sprintf(keep, "ENABLED"))
	off, _ := of(t, fmt.Sprintf(keep, "DISABLED"))
	if d := on.Decide(t.Context(), cli); !d.Alone || d.Runtime != agent.ClaudeCodeCLI || d.Flags[0].Variant != "off" {
		t.Errorf("decided %+v", d)
	}
	if d := off.Decide(t.Context(), cli); d.Alone || d.Flags[0].Variant != "" || d.Flags[0].Reason != "DISABLED" {
		t.Errorf("a disabled flag decided %+v", d)
	}
	cli.User = "ann"
	if d := on.Decide(t.Context(), cli); d.Alone {
		t.Errorf("decided %+v", d)
	}
	var none *Flags
	if d := none.Decide(t.Context(), cli); d.Runtime != agent.ClaudeCodeCLI || d.Alone || d.Flags != nil || none.Capabilities() != nil {
		t.Errorf("without flags decided %+v", d)
	}
}

func TestTheFileIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, file := of(t, fmt.Sprintf(keep, "ENABLED"))
		done := make(chan error, 1)
		ctx := t.Context()
		go func() { done <- f.Run(ctx) }()
		defer func() { synctest.Wait() }()
		alone := func() bool {
			time.Sleep(readEvery) //nolint:forbidigo // the bubble's clock
			synctest.Wait()
			return f.Decide(ctx, Subject{User: "ben", Session: "s", Runtime: agent.ClaudeCodeCLI}).Alone
		}
		if !alone() {
			t.Error("the first file does not hold")
		}
		write(t, file, fmt.Sprintf(keep, "DISABLED"))
		if alone() {
			t.Error("the change does not hold")
		}
		write(t, file, fmt.Sprintf(keep, "ENABLED")+"}")
		if alone() || !strings.Contains(f.Capabilities().Problem, "something behind it") {
			t.Errorf("a broken file: %v", f.Capabilities())
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if alone() || !strings.Contains(f.Capabilities().Problem, "cannot be read") {
			t.Errorf("without a file: %v", f.Capabilities())
		}
		write(t, file, fmt.Sprintf(keep, "ENABLED"))
		if !alone() || f.Capabilities().Problem != "" || len(f.Capabilities().Names) != 1 {
			t.Errorf("the mended file: %v", f.Capabilities())
		}
	})
}

func TestFaultyFilesAreRefused(t *testing.T) {
	runtime := func(rest string) string {
		return `{"flags": {"runtime": {"state": "ENABLED", "variants": {"cli": "claude-code", "native": "native"}, ` + rest + `}}}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"a file that is cut off":  {`{"flags": {"runtime": {"state": "ENAB`, "flags.file: the JSON value ends in the middle, so the file is cut off or a bracket is missing"},
		"nothing":                 {``, "the file is empty"},
		"no flags":                {`{}`, "flags: is missing"},
		"an unknown key":          {`{"flags": {}, "flag": 1}`, `unknown field "flag"`},
		"shared rules":            {`{"flags": {}, "$evaluators": {}}`, "$evaluators"},
		"an unknown key below":    {runtime(`"default": "cli"`), `flags.runtime: unknown field "default"`},
		"no state":                {`{"flags": {"runtime": {"variants": {"cli": "claude-code"}}}}`, `flags.runtime.state`},
		"no variants":             {`{"flags": {"runtime": {"state": "ENABLED"}}}`, `flags.runtime.variants: is missing`},
		"no such runtime":         {`{"flags": {"runtime": {"state": "ENABLED", "variants": {"x": "gemini"}}}}`, `flags.runtime.variants.x: gemini is neither agent`},
		"a number as a runtime":   {`{"flags": {"runtime": {"state": "ENABLED", "variants": {"x": 1}}}}`, `flags.runtime.variants.x: 1 is neither agent`},
		"no truth value":          {`{"flags": {"claude-code-keep-alive": {"state": "ENABLED", "variants": {"x": "on"}}}}`, `flags.claude-code-keep-alive.variants.x`},
		"no such default":         {runtime(`"defaultVariant": "x"`), `flags.runtime.defaultVariant: "x" is no variant`},
		"no such operator":        {runtime(`"targeting": {"if": [{"sem_ver": ["1", "=", "1"]}, "cli"]}`), `flags.runtime.targeting: the operator "sem_ver"`},
		"two operators":           {runtime(`"targeting": {"var": "x", "cat": []}`), `flags.runtime.targeting: each operation`},
		"no such result":          {runtime(`"targeting": {"if": [{"==": [{"var": "tenant"}, "x"]}, "clii", "native"]}`), `flags.runtime.targeting: "clii" is no variant`},
		"no such share":           {runtime(`"targeting": {"fractional": [["clii", 10], ["native", 90]]}`), `fractional: "clii" is no variant`},
		"a share without weight":  {runtime(`"targeting": {"fractional": [["cli", 0]]}`), `the weights add up to 0`},
		"a negative weight":       {runtime(`"targeting": {"fractional": [["cli", -1], ["native", 2]]}`), `the weight of "cli"`},
		"a share that is no list": {runtime(`"targeting": {"fractional": [["cli", 1], "native"]}`), `each share is`},
		"a rule that breaks":      {runtime(`"targeting": {"if": [{"in": ["a"]}, {"%": [1]}, "cli"]}`), `it cannot be evaluated`},
		"too large":               {runtime(`"targeting": ` + strings.Repeat(" ", maxBytes) + `null`), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "flags.json")
			write(t, file, c.text)
			_, err := Open(t.Context(), Config{File: file}, both, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "flags.file: ") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	_, err := Open(t.Context(), Config{File: filepath.Join(t.TempDir(), "none")}, both, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "flags.file: the file cannot be read: no such file") {
		t.Errorf("the error is %v", err)
	}
	_, err = parse([]byte(runtime(`"defaultVariant": "native"`)), both[:1])
	if err == nil || !strings.Contains(err.Error(), "session.runtimes.claude-code.program") {
		t.Errorf("a runtime that is not configured: %v", err)
	}
}
