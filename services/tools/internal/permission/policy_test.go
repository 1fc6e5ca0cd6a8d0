package permission

import (
	"strings"
	"testing"
)

func filter(t testing.TB, r Rules) *Profile {
	t.Helper()
	p, faults := CompileFilter(r)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return p
}

func TestInterruptBeatsAllOthers(t *testing.T) {
	p := profile(t, Rules{Allow: []string{"Bash", "Read"}, Deny: []string{"Bash(rm *)"}, Interrupt: []string{"Bash(rm -rf *)", "Read(./secret/**)"}})
	for name, c := range map[string]struct {
		q         Request
		interrupt bool
		says      string
	}{
		"a command":                       {Request{Tool: "Bash", Command: "ls; rm -rf /"}, true, "interrupt Bash(rm -rf *)"},
		"a path":                          {Request{Tool: "Read", Path: "secret/x"}, true, "interrupt Read(./secret/**)"},
		"a link":                          {Request{Tool: "Read", Path: "a", Leads: "secret/x"}, true, `leads to "secret/x"`},
		"lines that Edit shows":           {Request{Tool: "Edit", Path: "secret/x"}, true, "shows lines"},
		"a denied command alone":          {Request{Tool: "Bash", Command: "rm x"}, false, "deny Bash(rm *)"},
		"a command that cannot be parsed": {Request{Tool: "Bash", Command: "rm '"}, false, "cannot be ruled out"},
		"a path that leads outside":       {Request{Tool: "Read", Path: "/etc/passwd"}, false, "cannot be ruled out"},
	} {
		t.Run(name, func(t *testing.T) {
			d := p.Decide(c.q)
			if d.Kind != Deny || d.Interrupt != c.interrupt || !strings.Contains(d.Rule, c.says) {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestOnlyEnabledToolsAndDirectoriesAreUsed(t *testing.T) {
	p := profile(t, Rules{
		Allow: []string{"*"}, EnabledTools: []string{"Read", "Grep", "Write", "mcp__github__*", "mcp__jira"}, DisabledTools: []string{"mcp__github__delete"},
		Directories: []string{"src", "/workspace/docs/"},
	})
	for name, c := range map[string]struct {
		q    Request
		want Kind
		says string
	}{
		"an enabled tool":                 {Request{Tool: "Read", Path: "src/a"}, Allow, "allow *"},
		"the directory itself":            {Request{Tool: "Grep", Path: "/workspace/docs"}, Allow, "allow *"},
		"the whole workspace":             {Request{Tool: "Grep"}, Deny, "these are /workspace/src, /workspace/docs"},
		"another directory":               {Request{Tool: "Read", Path: "srcs/a"}, Deny, `Read on "srcs/a"`},
		"a path out of it":                {Request{Tool: "Read", Path: "src/../a"}, Deny, `Read on "a"`},
		"a link out of it":                {Request{Tool: "Write", Path: "src/a", Leads: "etc/a"}, Deny, `Write on "etc/a"`},
		"a target that is not known":      {Request{Tool: "Write", Path: "src/a", Doubt: "links go in circles"}, Deny, "links go in circles"},
		"a tool that is not enabled":      {Request{Tool: "Bash", Command: "ls"}, Deny, "Bash is not among the enabled tools of the profile test"},
		"a tool of an enabled server":     {Request{Tool: "mcp__jira__list"}, Allow, ""},
		"a tool that a pattern enables":   {Request{Tool: "mcp__github__list"}, Allow, ""},
		"a disabled tool of that pattern": {Request{Tool: "mcp__github__delete"}, Deny, "disabled tool mcp__github__delete"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := p.Decide(c.q); d.Kind != c.want || !strings.Contains(d.Rule, c.says) {
				t.Errorf("got %v (%s)", d.Kind, d.Rule)
			}
		})
	}
	if !p.AsksWhereItLeads("Write") || p.AsksWhereItLeads("Bash") {
		t.Error("directories bind where a path leads")
	}
	_, faults := CompileFilter(Rules{Deny: []string{"Read", "Bash("}, EnabledTools: []string{"Bash(ls)"}, Directories: []string{"/etc", "../x", "src"}})
	var fields []string
	for _, f := range faults {
		fields = append(fields, f.Field)
	}
	if got := strings.Join(fields, " "); got != "deny[1] enabled_tools[0] directories[0] directories[1]" {
		t.Errorf("the faults are in %s", got)
	}
}

func TestFiltersOnlyNarrow(t *testing.T) {
	full := Rules{Allow: []string{"Bash", "Read", "Write"}, Ask: []string{"Bash(git push *)"}}
	cases := []struct {
		name    string
		filters []Rules
		q       Request
		want    Kind
		says    string
	}{
		{"an empty filter changes nothing", []Rules{{}}, Request{Tool: "Write", Path: "a"}, Allow, "allow Write"},
		{"a filter denies", []Rules{{Deny: []string{"Bash(rm *)"}}}, Request{Tool: "Bash", Command: "rm x"}, Deny, "deny Bash(rm *), a rule of the agent or the session"},
		{"what it does not deny stays allowed", []Rules{{Deny: []string{"Bash(rm *)"}}}, Request{Tool: "Bash", Command: "ls"}, Allow, "allow Bash"},
		{"a filter asks", []Rules{{}, {Ask: []string{"Write"}}}, Request{Tool: "Write", Path: "a"}, Ask, "ask Write"},
		{"a filter that allows some allows nothing else", []Rules{{Allow: []string{"Read"}}}, Request{Tool: "Write", Path: "a"}, Deny, "no rule of the agent or the session allows Write"},
		{"a filter allows nothing that the profile denies", []Rules{{Allow: []string{"Grep"}}}, Request{Tool: "Grep"}, Deny, "no rule of the profile test allows Grep"},
		{"a filter that allows answers no question", []Rules{{Allow: []string{"Bash"}}}, Request{Tool: "Bash", Command: "git push"}, Ask, "ask Bash(git push *)"},
		{"the strictest of all holds", []Rules{{Ask: []string{"Write"}}, {Deny: []string{"Write(./a)"}}}, Request{Tool: "Write", Path: "a"}, Deny, "deny Write(./a)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := profile(t, full)
			for _, r := range c.filters {
				p.Filters = append(p.Filters, filter(t, r))
			}
			if d := p.Decide(c.q); d.Kind != c.want || !strings.Contains(d.Rule, c.says) {
				t.Errorf("got %v (%s)", d.Kind, d.Rule)
			}
		})
	}
	p := profile(t, full)
	p.Filters = []*Profile{filter(t, Rules{Interrupt: []string{"Write"}})}
	if d := p.Decide(Request{Tool: "Write", Path: "a"}); !d.Interrupt {
		t.Errorf("got %+v", d)
	}
	p.Filters = []*Profile{filter(t, Rules{Deny: []string{"Read(./secret/**)"}, Interrupt: []string{"Read(.env)"}})}
	if got := strings.Join(p.Withheld(Request{Tool: "Grep"}), " "); !strings.Contains(got, "secret/**") || !strings.Contains(got, ".env") || !p.AsksWhereItLeads("Grep") {
		t.Errorf("a search leaves out %q", got)
	}
}

func TestModes(t *testing.T) {
	rules := Rules{
		Allow: []string{"Read", "Grep", "TodoWrite", "AskUserQuestion", "Bash(cat *)", "Bash(ls *)", "Bash(make *)", "mcp__*"},
		Ask:   []string{"Write", "Edit", "Bash(git push *)", "Read(./private/**)"}, Deny: []string{"Write(./locked)"}, Interrupt: []string{"Write(./trap)"},
	}
	read := func(q Request) Request { q.ReadOnly = true; return q }
	command := func(text string) Request { return Request{Tool: "Bash", Command: text} }
	cases := []struct {
		name string
		mode Mode
		q    Request
		want Kind
		says string
	}{
		{"an edit is accepted", AcceptEdits, Request{Tool: "Write", Path: "a"}, Allow, "the mode accept-edits allows: ask Write"},
		{"an edit outside is not", AcceptEdits, Request{Tool: "Write", Path: "/etc/a"}, Deny, "cannot be ruled out"},
		{"an edit of what must be asked to be read is not", AcceptEdits, Request{Tool: "MultiEdit", Path: "private/a"}, Ask, "ask"},
		{"a denied edit stays denied", AcceptEdits, Request{Tool: "Write", Path: "locked"}, Deny, "deny Write(./locked)"},
		{"a link to it, too", AcceptEdits, Request{Tool: "Write", Path: "a", Leads: "locked"}, Deny, "deny Write(./locked)"},
		{"a target that is not known is none in the workspace", AcceptEdits, Request{Tool: "Write", Path: "a", Doubt: "links go in circles"}, Deny, "links go in circles"},
		{"a command is no edit", AcceptEdits, command("git push"), Ask, "ask Bash(git push *)"},
		{"reading is no edit", AcceptEdits, read(Request{Tool: "Read", Path: "private/a"}), Ask, "ask"},
		{"a question is answered", Bypass, command("git push"), Allow, "the mode bypass allows: ask Bash(git push *)"},
		{"a denial is not", Bypass, Request{Tool: "Write", Path: "locked"}, Deny, "deny"},
		{"nor what no rule allows", Bypass, command("curl x"), Deny, "no rule"},
		{"nor an interrupt", Bypass, Request{Tool: "Write", Path: "trap"}, Deny, "interrupt"},
		{"reading goes on", Plan, read(Request{Tool: "Read", Path: "a"}), Allow, "allow Read"},
		{"with its questions", Plan, read(Request{Tool: "Read", Path: "private/a"}), Ask, "ask Read(./private/**)"},
		{"a change is denied", Plan, Request{Tool: "Write", Path: "a"}, Deny, "the mode plan denies changes"},
		{"the list of things to do stays", Plan, Request{Tool: "TodoWrite"}, Allow, "allow"},
		{"questions stay", Plan, Request{Tool: "AskUserQuestion"}, Allow, "allow"},
		{"the plan can be presented", Plan, Request{Tool: "ExitPlanMode"}, Allow, "the mode plan"},
		{"a tool of a server is denied", Plan, Request{Tool: "mcp__a__b"}, Deny, "the mode plan"},
		{"unless it only reads", Plan, read(Request{Tool: "mcp__a__b"}), Allow, "allow mcp__*"},
		{"a command that reads is allowed", Plan, command("cat a | cat && ls -l"), Allow, "allow Bash(cat *), Bash(ls *)"},
		{"another is denied", Plan, command("ls; make test"), Deny, "it is not certain that make test only reads"},
		{"a redirection is denied", Plan, command("cat a > b"), Deny, "no rule"},
		{"a denied reader stays denied", Plan, command("head a"), Deny, `no rule of the profile test allows the command "head a"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := profile(t, rules)
			p.Mode = c.mode
			d := p.Decide(c.q)
			if d.Kind != c.want || !strings.Contains(d.Rule, c.says) {
				t.Errorf("got %v (%s)", d.Kind, d.Rule)
			}
			if d.Planning != (d.Kind == Deny && strings.Contains(d.Rule, "the mode plan")) {
				t.Errorf("planning: %v", d.Planning)
			}
		})
	}
	p := profile(t, Rules{Allow: []string{"Bash"}})
	p.Mode = Plan
	for _, text := range []string{
		"cat a >b", "X=1 cat a", "PATH=. cat a", "cat $(make)", "cat `make`", "cat <(make)", "find . -delete", "sort -o a b", "sed -i s/a/b/ c", "./cat a", "/bin/cat a",
		"cat() { make; }; cat", "env cat", "xargs cat", "git status", "tee a", "printf -v x y", "cat a &> b", "exec cat", "c''at\\\n a; rm x", "$X a", "{cat,a}", "if cat a; then make; fi",
	} {
		if d := p.Decide(command(text)); d.Kind != Deny {
			t.Errorf("%q is taken for reading", text)
		}
	}
	for _, text := range []string{"cat a 2>/dev/null", "for f in a b; do wc -l $f; done", "ls | grep x | head -3", "echo \"$HOME\"", "if grep -q a b; then cat b; fi"} {
		if d := p.Decide(command(text)); d.Kind != Allow {
			t.Errorf("%q is denied: %s", text, d.Rule)
		}
	}
}
