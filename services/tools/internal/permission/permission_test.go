package permission

import (
	"strings"
	"testing"
	"time"
)

func profile(t testing.TB, r Rules) *Policy {
	t.Helper()
	p, err := Compile("test", r)
	if err != nil {
		t.Fatal(err)
	}
	return Of(p)
}

func TestDecideOnCommands(t *testing.T) {
	git := Rules{Allow: []string{"Bash(git *)", "Bash(npm run test:*)", "Bash(go test ./...)", "Bash(ls *)"}}
	noRm := Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(rm *)"}}
	askPush := Rules{Allow: []string{"Bash(git *)"}, Ask: []string{"Bash(git push *)"}}
	cases := []struct {
		name    string
		rules   Rules
		command string
		want    Kind
	}{
		{"a command that a prefix rule covers is allowed", git, "git log --oneline", Allow},
		{"the prefix alone is allowed", git, "git", Allow},
		{"a longer word is another word", git, "gitk --all", Deny},
		{"the colon form is a prefix", git, "npm run test:unit", Deny},
		{"the colon form ends at a word", git, "npm run test --watch", Allow},
		{"an exact rule allows the exact command", git, "go test ./...", Allow},
		{"an exact rule allows nothing more", git, "go test ./... -exec sh", Deny},
		{"a chain of allowed commands is allowed", git, "git status && ls -l; git diff | ls", Allow},
		{"a chain with another command is not", git, "git status && curl example.org", Deny},
		{"a pipe into another command is not", git, "git log | sh", Deny},
		{"a command in the background counts", git, "git status & curl x", Deny},
		{"a command on the next line counts", git, "git status\ncurl x", Deny},
		{"a substitution whose parts are allowed is allowed", git, "git show $(git rev-parse HEAD)", Allow},
		{"a substitution with another command is not", git, "git show $(curl x)", Deny},
		{"backquotes are a substitution", git, "git show `curl x`", Deny},
		{"a substitution in double quotes counts", git, `git commit -m "$(curl x)"`, Deny},
		{"a process substitution counts", git, "git diff <(curl x) <(git log)", Deny},
		{"a subshell counts", git, "git status; (curl x)", Deny},
		{"a here-document with a substitution counts", git, "git commit -F - <<E\n$(curl x)\nE", Deny},
		{"a quoted here-document is text", git, "git commit -F - <<'E'\n$(curl x)\nE", Allow},
		{"a redirection to a file is not covered", git, "git log > .git/hooks/post-commit", Deny},
		{"a redirection to the null device is", git, "git log 2>/dev/null >/dev/null 2>&1", Allow},
		{"a descriptor moved onto a file is not covered", git, "git log >& file", Deny},
		{"a variable before the command is not covered", git, "GIT_SSH=./x git fetch", Deny},
		{"a variable set before is not covered", git, "PATH=.; git fetch", Deny},
		{"an export is not covered", git, "export PATH=.; git fetch", Deny},
		{"a function that hides the program is not covered", git, "git() { curl x; }; git log", Deny},
		{"a function with allowed parts is not covered either", git, "ls() { git log; }; ls", Deny},
		{"a loop over allowed commands is allowed", git, "for f in a b; do git add $f; done", Allow},
		{"a loop that sets PATH is not", git, "for PATH in .; do git add x; done", Deny},
		{"an assigning expansion is not covered", git, "git log ${PATH:=.}", Deny},
		{"a prompt expansion is not covered", git, "git log ${x@P}", Deny},
		{"an index that may be evaluated is not covered", git, "git log ${a[$(git log)]}", Deny},
		{"arithmetic is not covered", git, "git log $((PATH=1))", Deny},
		{"a computed program is not covered", git, "$(git log) x", Deny},
		{"a test is not covered", git, "[[ -v a ]] && git log", Deny},
		{"what cannot be parsed is not covered", git, "git log 'x", Deny},
		{"an empty command is not covered", git, "", Deny},
		{"a comment is not covered", git, "# git", Deny},
		{"quotes that mean nothing are seen through", git, `'git' "log"`, Allow},
		{"a program with a space in its name is another program", git, `"git log"`, Deny},
		{"a denied command is denied", noRm, "rm -rf x", Deny},
		{"others stay allowed", noRm, "ls; cat x > y", Allow},
		{"the rule without its star part matches too", noRm, "rm", Deny},
		{"a denied command in a chain is denied", noRm, "true && rm x", Deny},
		{"a denied command in a function is denied", noRm, "f() { rm x; }; f", Deny},
		{"by its full path it is denied", noRm, "/bin/rm x", Deny},
		{"quoted it is denied", noRm, `r'm' x; true`, Deny},
		{"escaped it is denied", noRm, `\rm x`, Deny},
		{"wrapped it is denied", noRm, "timeout 5s nice -n 3 rm x", Deny},
		{"with a variable it is denied", noRm, "A=1 rm x", Deny},
		{"with env it is denied", noRm, "env A=1 rm x", Deny},
		{"through xargs it is denied", noRm, "find . | xargs -0 rm x", Deny},
		{"in a shell's script it is denied", noRm, "bash -o pipefail -ec 'true; rm x'", Deny},
		{"in an evaluated script it is denied", noRm, `eval "rm x"`, Deny},
		{"a computed program cannot be ruled out", noRm, "$X y", Deny},
		{"a computed script cannot be ruled out", noRm, `sh -c "$X"`, Deny},
		{"a brace expansion cannot be ruled out", noRm, "{rm,-rf,x}", Deny},
		{"what cannot be parsed cannot be ruled out", noRm, "if", Deny},
		{"a comment does not go on after a backslash", git, "git log # \\\ncurl x", Deny},
		{"nor does it hide what is denied", noRm, "true # \\\nrm x", Deny},
		{"a carriage return does not join lines", git, "git log \\\r\ncurl x", Deny},
		{"nor does it hide what is denied", noRm, "true \\\r\nrm x", Deny},
		{"single quotes quote nothing in a quoted expansion", git, `git "${x:-'$(curl x)'}"`, Deny},
		{"nor do they hide what is denied", noRm, `echo "${x:-'$(rm x)'}" "$((1 + '$(rm x)'))"`, Deny},
		{"a here-document does not end after a joined line", git, "git <<-E\n\ta\\\n\tE\ngit <<'E'\n$(curl x)\nE\n", Deny},
		{"nor does it hide what is denied", noRm, "cat <<-E\n\ta\\\n\tE\ncat <<'E'\n$(rm x)\nE\n", Deny},
		{"a quoted here-document joins nothing", noRm, "cat > Dockerfile <<'E'\nRUN a \\\n  b\nE\n", Allow},
		{"a comment is read over", noRm, "ls # all of it\ncat x", Allow},
		{"a name that printf evaluates is not covered", Rules{Allow: []string{"Bash(printf *)"}}, `printf -v 'a[$(curl x)]' y`, Deny},
		{"a name that test evaluates is not covered", Rules{Allow: []string{"Bash(test *)"}}, `test -v 'a[$(curl x)]'`, Deny},
		{"a plain printf is", Rules{Allow: []string{"Bash(printf *)"}}, `printf '%s' -v "$x"`, Allow},
		{"an option's value is not the wrapped command", noRm, "timeout -s KILL 5 rm x", Deny},
		{"nor are several", noRm, "sudo -u root -g wheel rm x", Deny},
		{"a script behind an option is still read", noRm, "env -i bash -c 'rm x'", Deny},
		{"a command that env takes apart cannot be ruled out", noRm, "env -iS 'rm -rf x'", Deny},
		{"what find executes is denied", noRm, `find . -name x -type f -exec rm {} +`, Deny},
		{"what a trap runs is denied", noRm, "trap 'rm x' EXIT", Deny},
		{"a find that executes something else is allowed", noRm, `find . -name rm -exec grep -l y {} \;`, Allow},
		{"a command with many options is allowed", noRm, "timeout -k 5 5 ls -a -b -c", Allow},
		{"an ask rule beats an allow rule", askPush, "git push origin", Ask},
		{"an ask rule in a chain asks for all of it", askPush, "git add . && git push", Ask},
		{"what it does not match is allowed", askPush, "git pull", Allow},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := profile(t, c.rules).Decide(Request{Tool: "Bash", Command: c.command})
			if got.Kind != c.want {
				t.Errorf("%q: got %v (%s), want %v", c.command, got.Kind, got.Rule, c.want)
			}
			if got.Rule == "" {
				t.Error("the decision has no explanation")
			}
		})
	}
}

func TestDecideOnPaths(t *testing.T) {
	cases := []struct {
		name  string
		rules Rules
		tool  string
		path  string
		want  Kind
	}{
		{"everything below the workspace", Rules{Allow: []string{"Read(./**)"}}, "Read", "a/b.go", Allow},
		{"the same, absolute", Rules{Allow: []string{"Read(./**)"}}, "Read", "/workspace/a", Allow},
		{"a skill's file", Rules{Allow: []string{"Read(./**)"}}, "Read", "/skills/pdf/forms.md", Allow},
		{"a skill's file by its name", Rules{Allow: []string{"Read(*.md)"}}, "Read", "/skills/pdf/forms.md", Allow},
		{"the skills alone", Rules{Allow: []string{"Read(/skills/**)"}}, "Read", "/skills/pdf/forms.md", Allow},
		{"no file of the workspace by a rule on skills", Rules{Allow: []string{"Read(/skills/**)"}}, "Read", "skills/pdf/forms.md", Deny},
		{"no skill by a rule on a folder of the workspace", Rules{Allow: []string{"Read(./skills/**)"}}, "Read", "/skills/pdf/forms.md", Deny},
		{"a skill that is denied", Rules{Allow: []string{"Read"}, Deny: []string{"Read(/skills/pdf/**)"}}, "Read", "/skills/x/../pdf/forms.md", Deny},
		{"nothing beside the skills", Rules{Allow: []string{"Read(./**)"}}, "Read", "/skillset/x", Deny},
		{"nothing outside by way of skills", Rules{Allow: []string{"Read(./**)"}}, "Read", "/skills/../etc/passwd", Deny},
		{"nothing outside", Rules{Allow: []string{"Read(./**)"}}, "Read", "/etc/passwd", Deny},
		{"nothing outside by dots", Rules{Allow: []string{"Read(./**)"}}, "Read", "a/../../etc/passwd", Deny},
		{"nothing with a NUL", Rules{Allow: []string{"Read(./**)"}}, "Read", "a\x00b", Deny},
		{"a directory beside the workspace is outside", Rules{Allow: []string{"Read(./**)"}}, "Read", "/workspace2/a", Deny},
		{"a rule on reading covers searching", Rules{Allow: []string{"Read(src/**)"}}, "Grep", "src", Allow},
		{"searching all is more than a part", Rules{Allow: []string{"Read(src/**)"}}, "Grep", "", Deny},
		{"an absolute rule", Rules{Allow: []string{"Write(/workspace/src/**)"}}, "Write", "src/x", Allow},
		{"dots are resolved first", Rules{Allow: []string{"Write(src/**)"}}, "Write", "src/../x", Deny},
		{"a rule on writing does not cover editing", Rules{Allow: []string{"Write(src/**)"}}, "Edit", "src/x", Deny},
		{"a rule on editing covers every change", Rules{Allow: []string{"Edit(src/**)"}}, "MultiEdit", "src/x", Allow},
		{"a denied name is denied at any depth", Rules{Allow: []string{"Read"}, Deny: []string{"Read(.env)"}}, "Read", "a/b/.env", Deny},
		{"a denied directory covers what is in it", Rules{Allow: []string{"Read"}, Deny: []string{"Read(secrets/)"}}, "Read", "x/secrets/y/z", Deny},
		{"an anchored directory is only that one", Rules{Allow: []string{"Read"}, Deny: []string{"Read(./secrets)"}}, "Read", "x/secrets/y", Allow},
		{"outside a denial cannot be ruled out", Rules{Allow: []string{"Read"}, Deny: []string{"Read(x)"}}, "Read", "/proc/self/root/workspace/x", Deny},
		{"a denial of editing covers writing", Rules{Allow: []string{"Write"}, Deny: []string{"Edit(x)"}}, "Write", "x", Deny},
		{"deny beats ask and allow", Rules{Allow: []string{"Read"}, Ask: []string{"Read"}, Deny: []string{"Read"}}, "Read", "x", Deny},
		{"ask beats allow", Rules{Allow: []string{"Read"}, Ask: []string{"Read(x)"}}, "Read", "x", Ask},
		{"a wildcard covers a server's tools", Rules{Allow: []string{"mcp__github__*"}}, "mcp__github__list", "", Allow},
		{"a server's name covers its tools", Rules{Allow: []string{"mcp__github"}}, "mcp__github__list", "", Allow},
		{"it does not cover another server's", Rules{Allow: []string{"mcp__git"}}, "mcp__github__list", "", Deny},
		{"nothing is allowed by no rule", Rules{}, "Read", "x", Deny},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := profile(t, c.rules).Decide(Request{Tool: c.tool, Path: c.path})
			if got.Kind != c.want {
				t.Errorf("got %v (%s), want %v", got.Kind, got.Rule, c.want)
			}
		})
	}
}

func TestBuiltinProfiles(t *testing.T) {
	set, err := NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]Kind{
		"full":       {"Bash": Allow, "Write": Allow, "Read": Allow, "TodoWrite": Allow, "Other": Deny},
		"read-only":  {"Bash": Deny, "Write": Deny, "MultiEdit": Deny, "Read": Allow, "LS": Allow, "TodoWrite": Allow},
		"ask-writes": {"Bash": Ask, "Write": Ask, "Edit": Ask, "MultiEdit": Ask, "Read": Allow, "Grep": Allow},
	}
	for name, tools := range want {
		for tool, kind := range tools {
			if got := Of(set[name]).Decide(Request{Tool: tool, Command: "x", Path: "x"}); got.Kind != kind {
				t.Errorf("%s, %s: got %v, want %v", name, tool, got.Kind, kind)
			}
		}
	}
}

func TestNewSetNamesEveryFault(t *testing.T) {
	_, err := NewSet(map[string]Rules{
		"full": {},
		"Bad":  {},
		"mine": {
			Allow: []string{"Bash(", "Bash()", "TodoWrite(x)", "mcp__a__*(x)", "", "1x", "Read(/etc/**)", "Read(../x)", "Read([)", "Bash(a\x00)"},
			Deny:  []string{"Bash(" + strings.Repeat("x", 5000) + ")"},
		},
	})
	if err == nil {
		t.Fatal("faulty profiles were taken")
	}
	for _, want := range []string{
		"profile full: the name belongs", `profile "Bad"`, `rule "Bash(": the closing`, `"Bash()": there is nothing`, "TodoWrite takes no",
		"a tool name with * takes", `rule "": it does not begin`, `"1x": it does not begin`, `"Read(/etc/**)": the path leads outside`,
		`"Read(../x)": the path leads`, `"Read([)": the path pattern`, "NUL", "longer than 4096",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestSearchesLeaveOutWhatRulesWithhold(t *testing.T) {
	p := profile(t, Rules{
		Allow: []string{"Read", "Grep"}, Ask: []string{"Read(private/**)"}, Deny: []string{"Read", "Edit(x)", "Read(.env)", "Grep(logs/**)"},
	})
	for path, want := range map[string]struct{ grep, asked, read bool }{
		"a/.env": {true, true, true}, "logs/x": {true, true, false}, "private/x": {true, false, true}, "src/x": {}, "x": {},
	} {
		for q, want := range map[Request]bool{{Tool: "Grep", Path: "."}: want.grep, {Tool: "Grep", Path: "private"}: want.asked, {Tool: "Read", Path: "src"}: want.read} {
			if got := (&pathPattern{globs: p.Withheld(q)}).match(path); got != want {
				t.Errorf("%s on %s withholds %s: %v, want %v", q.Tool, q.Path, path, got, want)
			}
		}
	}
	if p.AsksWhereItLeads("Bash") || !p.AsksWhereItLeads("LS") {
		t.Error("the rules on reading cover LS, and not Bash")
	}
}

func TestARuleHoldsWhereAPathLeads(t *testing.T) {
	secret := Rules{Allow: []string{"Read", "Edit"}, Deny: []string{"Read(./secret/**)", "Edit(./secret/**)"}}
	askSecret := Rules{Allow: []string{"Read"}, Ask: []string{"Read(./secret/**)"}}
	source := Rules{Allow: []string{"Read(./src/**)", "Read(./lib/**)"}}
	for _, tc := range []struct {
		name  string
		rules Rules
		q     Request
		want  Kind
		says  string
	}{
		{"a link to what is denied", secret, Request{Tool: "Read", Path: "open/k", Leads: "secret/k"}, Deny, `leads to "secret/k"`},
		{"a link to the directory that is denied", secret, Request{Tool: "Grep", Path: "open", Leads: "secret"}, Deny, "deny Read"},
		{"writing through such a link", secret, Request{Tool: "Write", Path: "open/new", Leads: "secret/new"}, Deny, "deny Edit"},
		{"a link out of what is denied", secret, Request{Tool: "Read", Path: "secret/link", Leads: "a"}, Deny, "deny Read"},
		{"a link to something else", secret, Request{Tool: "Read", Path: "a", Leads: "b"}, Allow, "allow Read"},
		{"no link", secret, Request{Tool: "Read", Path: "./a", Leads: "a"}, Allow, "allow Read"},
		{"listing what is asked about", askSecret, Request{Tool: "LS", Path: "open", Leads: "secret"}, Ask, `leads to "secret"`},
		{"a link to what is asked about, allowed", askSecret, Request{Tool: "Read", Path: "open/k", Leads: "secret/k"}, Ask, `leads to "secret/k"`},
		{"a link out of what is allowed", source, Request{Tool: "Read", Path: "src/link", Leads: "other"}, Deny, `"src/link", which leads to "other"`},
		{"a link into what is allowed", source, Request{Tool: "Read", Path: "other", Leads: "src/a"}, Deny, "no rule"},
		{"a link between what two rules allow", source, Request{Tool: "Read", Path: "src/a", Leads: "lib/a"}, Allow, "Read(./src/**), Read(./lib/**)"},
		{"where it leads cannot be told", secret, Request{Tool: "Read", Path: "a", Doubt: "links go in circles"}, Deny, "links go in circles"},
		{"where it leads cannot be told, and a rule allows some", source, Request{Tool: "Read", Path: "src/a", Doubt: "links go in circles"}, Deny, "links go in circles"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := profile(t, tc.rules).Decide(tc.q); d.Kind != tc.want || !strings.Contains(d.Rule, tc.says) {
				t.Errorf("%s: %s", d.Kind, d.Rule)
			}
		})
	}
}

func TestARuleOnReadingLimitsEdit(t *testing.T) {
	const lines = "shows lines of the file"
	keys := Rules{Allow: []string{"Read", "Edit", "MultiEdit", "Write", "Grep"}, Deny: []string{"Read(./*.key)"}, Ask: []string{"Read(./private/**)"}}
	all := Rules{Allow: keys.Allow, Deny: []string{"Read(*)"}}
	tool := Rules{Allow: keys.Allow, Deny: []string{"Read"}}
	reader := Rules{Allow: []string{"Read(./**)"}}
	for name, tc := range map[string]struct {
		rules Rules
		q     Request
		want  Kind
		says  string
	}{
		"a denial of reading denies Edit":              {keys, Request{Tool: "Edit", Path: "a.key"}, Deny, "deny Read(./*.key) (Edit " + lines},
		"a denial of reading denies MultiEdit":         {keys, Request{Tool: "MultiEdit", Path: "/workspace/a.key"}, Deny, "(MultiEdit " + lines},
		"also through a link":                          {keys, Request{Tool: "Edit", Path: "open", Leads: "a.key"}, Deny, `leads to "a.key"`},
		"also where the path leads is not known":       {keys, Request{Tool: "Edit", Path: "open", Doubt: "links go in circles"}, Deny, "links go in circles"},
		"a question about reading is one about Edit":   {keys, Request{Tool: "Edit", Path: "private/x"}, Ask, "ask Read(./private/**) (Edit " + lines},
		"another file can be edited":                   {keys, Request{Tool: "Edit", Path: "a.txt"}, Allow, "allow Edit"},
		"Write shows nothing":                          {keys, Request{Tool: "Write", Path: "a.key"}, Allow, "allow Write"},
		"a denial of every path denies Edit":           {all, Request{Tool: "Edit", Path: "a"}, Deny, lines},
		"a denial of every path denies Grep":           {all, Request{Tool: "Grep"}, Deny, "deny Read(*)"},
		"a denial of the tool Read is about that tool": {tool, Request{Tool: "Edit", Path: "a"}, Allow, "allow Edit"},
		"leave to read is no leave to edit":            {reader, Request{Tool: "Edit", Path: "a"}, Deny, "no rule of the profile test allows Edit"},
		"nor to edit several places":                   {reader, Request{Tool: "MultiEdit", Path: "a"}, Deny, "no rule"},
	} {
		t.Run(name, func(t *testing.T) {
			p := profile(t, tc.rules)
			if d := p.Decide(tc.q); d.Kind != tc.want || !strings.Contains(d.Rule, tc.says) {
				t.Errorf("%s: %s", d.Kind, d.Rule)
			}
		})
	}
	for tool, want := range map[string]bool{"Edit": true, "MultiEdit": true, "Write": false, "Bash": false} {
		if got := profile(t, keys).AsksWhereItLeads(tool); got != want {
			t.Errorf("%s asks where its path leads: %v", tool, got)
		}
	}
}

func TestARuleMatchesNamesHoweverTheyAreWritten(t *testing.T) {
	p := profile(t, Rules{Allow: []string{"Read"}, Deny: []string{"Read(./app/[id]/**)", "Read({a,b}.txt)", `Read(./x\x0ay)`, "Read(caf\u00e9)"}})
	for path, want := range map[string]Kind{
		"app/[id]/page.tsx": Deny, "app/i/page.tsx": Deny, "app/x/page.tsx": Allow, "d/{a,b}.txt": Deny, "a.txt": Deny, "c.txt": Allow, "x\ny": Deny, "caf\u00e9": Deny, "cafe\u0301": Deny,
	} {
		if d := p.Decide(Request{Tool: "Read", Path: path}); d.Kind != want {
			t.Errorf("%q: %s", path, d.Rule)
		}
	}
}

func TestExplanationNamesTheCommand(t *testing.T) {
	got := profile(t, Rules{Allow: []string{"Bash(git *)"}}).Decide(Request{Tool: "Bash", Command: "git log; curl x"})
	if want := `no rule of the profile test allows the command "curl x"`; got.Rule != want {
		t.Errorf("got %q, want %q", got.Rule, want)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"Bash", "Bash(git *)", "Read(./**)", "mcp__a__*", "Bash(a:*)", "Read([a-z]/{x,y})", "Bash(\\)"} {
		f.Add(seed, "git log", "a/b")
	}
	f.Fuzz(func(t *testing.T, rule, command, path string) {
		p, err := Compile("fuzz", Rules{Allow: []string{"Bash", "Read"}, Deny: []string{rule}})
		if err != nil {
			return
		}
		of := Of(p)
		of.Decide(Request{Tool: "Bash", Command: command})
		of.Decide(Request{Tool: "Grep", Path: path, Leads: path})
		of.Withheld(Request{Tool: "Grep", Path: path})
	})
}

// FuzzCommands checks that a prefix rule never lets a program run that it does
// not name, as far as another way of looking at the script can tell.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{"git log", "git log; ls", "git $(x)", "git <<E\n$(x)\nE", "'git' x", "git ${x:-`y`}", "for x in a; do git $x; done", "{ git; }", "! git", "time git", "git \\\nx", "case x in x) git;; esac"} {
		f.Add(seed)
	}
	p := profile(f, Rules{Allow: []string{"Bash(git *)"}})
	deny := profile(f, Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(git *)"}})
	f.Fuzz(func(t *testing.T, command string) {
		begin := time.Now()
		allowed := p.Decide(Request{Tool: "Bash", Command: command}).Kind == Allow
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("%d bytes took %s", len(command), d)
		}
		denied := deny.Decide(Request{Tool: "Bash", Command: command}).Kind == Deny
		if allowed && !denied {
			t.Errorf("%q is allowed as git and not denied as git", command)
		}
		if allowed && !strings.Contains(strings.NewReplacer(`\`, "", "'", "", `"`, "", "\n", "").Replace(command), "git") {
			t.Errorf("%q is allowed as git", command)
		}
	})
}

func TestDecideOnNames(t *testing.T) {
	some := Rules{Allow: []string{"Task(find*)", "Skill(pdf-forms)"}}
	but := Rules{Allow: []string{"Task", "Skill"}, Deny: []string{"Task(fixer)"}, Ask: []string{"Skill(pdf-*)"}, Interrupt: []string{"Task(root)"}}
	for _, c := range []struct {
		rules      Rules
		tool, name string
		want       Decision
	}{
		{some, "Task", "finder", Decision{Kind: Allow, Rule: "allow Task(find*)"}},
		{some, "Task", "fixer", Decision{Kind: Deny, Rule: `no rule of the profile test allows Task of "fixer"`, unruled: true}},
		{some, "Task", "", Decision{Kind: Deny, Rule: "no rule of the profile test allows Task", unruled: true}},
		{some, "Skill", "pdf-forms", Decision{Kind: Allow, Rule: "allow Skill(pdf-forms)"}},
		{some, "Skill", "pdf-forms2", Decision{Kind: Deny, Rule: `no rule of the profile test allows Skill of "pdf-forms2"`, unruled: true}},
		{some, "Skill", "finder", Decision{Kind: Deny, Rule: `no rule of the profile test allows Skill of "finder"`, unruled: true}},
		{but, "Task", "finder", Decision{Kind: Allow, Rule: "allow Task"}},
		{but, "Task", "fixer", Decision{Kind: Deny, Rule: "deny Task(fixer)"}},
		{but, "Task", "root", Decision{Kind: Deny, Rule: "interrupt Task(root)", Interrupt: true}},
		{but, "Task", "", Decision{Kind: Deny, Rule: "interrupt Task(root) (cannot be ruled out: the call names nothing)"}},
		{but, "Skill", "pdf-forms", Decision{Kind: Ask, Rule: "ask Skill(pdf-*)"}},
		{but, "Skill", "tables", Decision{Kind: Allow, Rule: "allow Skill"}},
	} {
		p, q := profile(t, c.rules), Request{Tool: c.tool, Name: c.name}
		if got := p.Decide(q); got != c.want {
			t.Errorf("%s of %q: %+v, want %+v", c.tool, c.name, got, c.want)
		}
		if c.want.Kind == Ask {
			if got := p.Suggest(q); strings.Join(got, " ") != "Skill(pdf-forms) Skill" {
				t.Errorf("suggested are %q", got)
			}
		}
	}
}
