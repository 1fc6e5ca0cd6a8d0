package permission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// around puts n pairs of texts around another one.
func around(before, inner, behind string, n int) string {
	return strings.Repeat(before, n) + inner + strings.Repeat(behind, n)
}

// numbered joins n texts that are made of their numbers.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// many returns n rules that are made of their numbers.
func many(n int, format string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return all
}

// work returns the steps of an explanation, and the bytes that it allocates.
func work(p *Policy, q Request) (steps, bytes int) {
	var before, after runtime.MemStats
	m := &meter{}
	runtime.ReadMemStats(&before)
	p.explain(q, m)
	runtime.ReadMemStats(&after)
	return m.used, int(after.TotalAlloc - before.TotalAlloc)
}

// TestTheWorkOfAnExplanationIsLinear doubles what a caller sends. The work doubles, too, or the limit ends it.
func TestTheWorkOfAnExplanationIsLinear(t *testing.T) {
	rules := Rules{Allow: []string{"Bash(ls *)", "Bash(cat *)"}}
	strict := Rules{Allow: []string{"Bash"}, Ask: []string{"Bash(*x*y*z)", "Bash(ls b *)"}, Deny: []string{"Bash(git push *)", "Bash(ls * --force)"}}
	command := func(text func(n int) string) func(n int) (Rules, Request) {
		return func(n int) (Rules, Request) { return rules, Request{Tool: bash, Command: text(n)} }
	}
	cases := map[string]struct {
		n    int
		make func(n int) (Rules, Request)
	}{
		"substitutions":             {1000, command(func(n int) string { return around("$(", "ls", ")", n) })},
		"substitutions of words":    {1000, command(func(n int) string { return around("ls $(", "ls", ")", n) })},
		"quoted substitutions":      {1000, command(func(n int) string { return around(`ls "$(`, "ls", `)"`, n) })},
		"substitutions to the most": {8, command(func(n int) string { return strings.Repeat(around("$(", "ls", ")", 30)+";", n) })},
		"process substitutions":     {1000, command(func(n int) string { return around("ls <(", "ls", ")", n) })},
		"subshells":                 {1000, command(func(n int) string { return around("( ", "ls", ")", n) })},
		"groups":                    {1000, command(func(n int) string { return around("{ ", "ls;", "}", n) })},
		"defaults":                  {1000, command(func(n int) string { return "ls " + around("${a:-", "b", "}", n) })},
		"arithmetic":                {1000, command(func(n int) string { return "ls " + around("$((", "1", "))", n) })},
		"conditions":                {500, command(func(n int) string { return around("if ", "ls", "; then ls; fi", n) })},
		"functions":                 {1000, command(func(n int) string { return around("f() ", "{ ls; }", "", n) })},
		"here-documents":            {500, command(func(n int) string { return around("cat <<A\n$(", "ls", ")\nA\n", n) })},
		"commands":                  {2000, command(func(n int) string { return numbered(n, "a%d;") })},
		"a pipe":                    {2000, command(func(n int) string { return around("ls|", "ls", "", n) })},
		"braces":                    {1000, command(func(n int) string { return "ls " + around("{a,", "b", "}", n) })},
		"braces in a row":           {1000, command(func(n int) string { return "ls " + around("{a,b}", "", "", n) })},
		"words":                     {5000, command(func(n int) string { return "git " + around("$x ", "push", "", n) })},
		"options":                   {4000, command(func(n int) string { return "git " + around("-c a ", "push", "", n) })},
		"wrappers":                  {500, command(func(n int) string { return around("sudo -a ", "ls", "", n) })},
		"remote shells":             {40, command(func(n int) string { return around("ssh ", "ls", "", n) })},
		"containers":                {100, command(func(n int) string { return around("docker x $y ", "ls", "", n) })},
		"parallel":                  {100, command(func(n int) string { return around("parallel -a ", "ls", "", n) })},
		"scripts":                   {500, command(func(n int) string { return around("bash -c 'ls'; ", "ls", "", n) })},
		"open brackets":             {20_000, command(func(n int) string { return "ls " + around("[", "", "", n) })},
		"classes without an end":    {8000, command(func(n int) string { return "ls " + around("[.[:", "", "", n) })},
		"classes of other kinds":    {5000, command(func(n int) string { return "ls " + around("[.[=[:", ":]", "", n) })},
		"brackets between quotes":   {8000, command(func(n int) string { return "ls " + around("[''", "", "", n) })},
		"xargs":                     {500, command(func(n int) string { return around("xargs -I{} {} ", "ls", "", n) })},
		"words of strict rules": {2000, func(n int) (Rules, Request) {
			return strict, Request{Tool: bash, Command: "ls " + around(`"$x" `, "b", "", n)}
		}},
		"files of strict rules": {2000, func(n int) (Rules, Request) {
			return strict, Request{Tool: bash, Command: "ls " + around(`*x? `, "b", "", n)}
		}},
		"commands and rules": {500, func(n int) (Rules, Request) {
			return Rules{Allow: []string{"Bash"}, Deny: many(n, "Bash(*%d b)")}, Request{Tool: bash, Command: numbered(n, "ls %d;")}
		}},
		"commands and rules that allow": {500, func(n int) (Rules, Request) {
			return Rules{Allow: many(n, "Bash(ls a %d *)")}, Request{Tool: bash, Command: numbered(n, "ls %d;")}
		}},
		"paths and rules": {250, func(n int) (Rules, Request) {
			return Rules{Allow: many(n, "Read(**/{a,b}*/%d/*c)")}, Request{Tool: "Read", Path: numbered(n, "%d/ab/")}
		}},
		"names and rules": {500, func(n int) (Rules, Request) {
			return Rules{Allow: many(n, "Task(*%d*)")}, Request{Tool: "Task", Name: strings.Repeat("a", 100*n)}
		}},
	}
	for _, name := range prove.Sample(slices.Sorted(maps.Keys(cases)), 3) {
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			size := func(n int) (steps, bytes int) {
				r, q := c.make(n)
				p := profile(t, Rules{Allow: []string{"*"}})
				p.Filters = []*Profile{filter(t, r)}
				return work(p, q)
			}
			size(1) // what is prepared once
			steps, bytes := size(c.n)
			more, further := size(2 * c.n)
			factor := 2.5
			if strings.Contains(name, " and rules") { // both are doubled
				factor *= 2
			}
			if float64(more) > factor*float64(steps)+20_000 && more <= maxSteps {
				t.Errorf("%d steps for %d, and %d for twice as many", steps, c.n, more)
			}
			if float64(further) > factor*float64(bytes)+100_000 && further > 32<<20 {
				t.Errorf("%d bytes for %d, and %d for twice as many", bytes, c.n, further)
			}
			if over := more - maxSteps; over > maxSteps/8 {
				t.Errorf("%d steps beyond the limit", over)
			}
			if further > 256<<20 {
				t.Errorf("it allocates %d bytes", further)
			}
			t.Logf("%d, %d steps; %d, %d bytes", steps, more, bytes, further)
		})
	}
}

func TestWhatTheLimitLeavesUncheckedIsDenied(t *testing.T) {
	for name, c := range map[string]struct {
		rules Rules
		q     Request
		says  string
	}{
		"a command within expansions": {Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(rm *)"}}, Request{Tool: bash, Command: around("echo $(", "rm x", ")", 100)}, "expansions"},
		"a command within brackets":   {Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(rm *)"}}, Request{Tool: bash, Command: around("( ", "rm x", ")", 1000)}, "brackets"},
		"a command behind many rules": {Rules{Allow: []string{"Bash"}, Deny: append(many(1023, "Bash(*a*%d*x)"), "Bash(rm *)")}, Request{Tool: bash, Command: "rm x;" + numbered(6000, "ls a%d;")}, "deny"},
		"a path":                      {Rules{Allow: []string{"Read"}, Deny: []string{"Read(**/" + strings.Repeat("{a,b}", 8) + "*)"}}, Request{Tool: "Read", Path: strings.Repeat("a/", 1<<17)}, tooMuch},
		"a name":                      {Rules{Allow: []string{"Task"}, Deny: many(1024, "Task(*%d)")}, Request{Tool: "Task", Name: strings.Repeat("a", 1<<20)}, "cannot be ruled out"},
	} {
		t.Run(name, func(t *testing.T) {
			p := profile(t, c.rules)
			if d := p.Decide(c.q); d.Kind != Deny || !strings.Contains(d.Rule, c.says) {
				t.Errorf("%v (%s)", d.Kind, d.Rule)
			}
			if d := profile(t, Rules{Allow: c.rules.Deny}).Decide(c.q); d.Kind != Deny {
				t.Errorf("the same rules allow it: %s", d.Rule)
			}
		})
	}
	for _, spec := range []string{strings.Repeat("{a,b}", 9), "{" + strings.Repeat("a,", 300) + "b}", strings.Repeat("{a,[}],b,c}", 8), "{a,{b,{c,d}}}" + strings.Repeat("{{a,b},{c,d}}", 4)} {
		if _, err := Compile("test", Rules{Deny: []string{"Read(" + spec + ")"}}); err == nil || !strings.Contains(err.Error(), "256") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestTheWorkOfAnExplanationEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := profile(t, Rules{Allow: []string{"Bash"}, Deny: many(1024, "Bash(*a*%d*x)")})
	q := Request{Tool: bash, Command: numbered(6000, "ls a%d;")}
	if _, err := p.Explain(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	m, all := meterOf(ctx), &meter{}
	p.explain(q, m)
	p.explain(q, all)
	if parsed := parseSteps * len(q.Command); m.asked > parsed+2<<16 || all.used < 10*m.asked {
		t.Errorf("%d of %d steps after the caller left", m.asked, all.used)
	}
}

// TestADecisionNamesFewRules has two long rules allow the commands of a script in turn.
func TestADecisionNamesFewRules(t *testing.T) {
	rules := make([]string, 100)
	for i := range rules {
		rules[i] = fmt.Sprintf("Bash(ls%d%s *)", i, strings.Repeat(" ", 4000))
	}
	p := profile(t, Rules{Allow: rules})
	d := p.Decide(Request{Tool: bash, Command: strings.Repeat("ls1;ls2;", 3000)})
	if d.Kind != Allow || len(d.Rule) > 10_000 || !strings.Contains(d.Rule, "ls1") || !strings.Contains(d.Rule, "ls2") {
		t.Errorf("%v (%d bytes: %.100s)", d.Kind, len(d.Rule), d.Rule)
	}
	d = p.Decide(Request{Tool: bash, Command: numbered(100, "ls%d;")})
	if d.Kind != Allow || len(d.Rule) > 50_000 || !strings.HasSuffix(d.Rule, "and others") {
		t.Errorf("%v (%d bytes: %.100s)", d.Kind, len(d.Rule), d.Rule)
	}
}
