package permission

import (
	"bytes"
	"fmt"
	oldrand "math/rand"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"mvdan.cc/sh/v3/syntax"
)

// world is a random profile with filters, a mode, grants and a call.
type world struct {
	rules, filter, second Rules
	grants                []string
	mode                  Mode
	q                     Request
}

var (
	someRules = []string{
		"Bash", "Bash(git *)", "Bash(git push *)", "Bash(ls *)", "Bash(rm *)", "Bash(git log | ls)", "Read", "Read(./src/**)", "Read(.env)", "Read(./secret/**)", "Edit", "Edit(./src/**)",
		"Write", "Write(./a)", "Grep", "Grep(./src)", "Task", "Task(finder)", "Task(f*)", "Skill", "Skill(tables)", "TodoWrite", "ExitPlanMode", "mcp__*", "mcp__a", "mcp__a__*", "mcp__a__b", "mcp__b__c", "*",
	}
	someTools    = []string{"Bash", "Read", "Write", "Edit", "MultiEdit", "Grep", "Glob", "LS", "Task", "Skill", "TodoWrite", "ExitPlanMode", "mcp__a__b", "mcp__b__c", "Other"}
	someCommands = []string{"git push", "git log | ls", "ls -l; git status", "rm x", "git log; rm x", "$X y", "cat a", "cat a > b", "bash -c 'git push'", "if", "for f in a; do ls $f; done", "git log && ls", "git $X", "git -C . push", "git {push,x}; ls *"}
	someNames    = []string{"finder", "fixer", "tables", "f*", "helper", ""}
	somePaths    = []string{"", "a", "src", "src/x", "src/.env", "secret/k", "/etc/passwd", "../x", "b"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func sample(r *rand.Rand, from []string, most int) []string {
	var all []string
	for range r.IntN(most + 1) {
		all = append(all, pick(r, from))
	}
	return all
}

func randomRules(r *rand.Rand) Rules {
	var x Rules
	x.Allow, x.Ask, x.Deny, x.Interrupt = sample(r, someRules, 8), sample(r, someRules, 2), sample(r, someRules, 2), sample(r, someRules, 1)
	if r.IntN(4) == 0 {
		x.EnabledTools = sample(r, append(slices.Clone(someTools), "mcp__a", "mcp__*"), 6)
	}
	if r.IntN(4) == 0 {
		x.DisabledTools = sample(r, someTools, 2)
	}
	if r.IntN(4) == 0 {
		x.Directories = sample(r, []string{"src", ".", "secret"}, 2)
	}
	return x
}

func randomWorld(r *rand.Rand) world {
	w := world{rules: randomRules(r), filter: randomRules(r), second: randomRules(r), mode: Mode(r.IntN(4))}
	w.grants = sample(r, someRules[:len(someRules)-6], 3)
	w.q = Request{Tool: pick(r, someTools), Command: pick(r, someCommands), Path: pick(r, somePaths), Name: pick(r, someNames)}
	if r.IntN(2) == 0 {
		w.q.Leads = pick(r, somePaths)
	}
	if r.IntN(8) == 0 {
		w.q.Doubt = "links go in circles"
	}
	w.q.ReadOnly = slices.Contains([]string{"Read", "Grep", "Glob", "LS"}, w.q.Tool)
	return w
}

func (w world) policy(t *testing.T, filters ...Rules) *Policy {
	t.Helper()
	p := profile(t, w.rules)
	p.Mode = w.mode
	for _, f := range filters {
		p.Filters = append(p.Filters, filter(t, f))
	}
	for _, text := range w.grants {
		if g, err := NewGrant(w.q.Tool, text, "ann"); err == nil {
			p.Grants = append(p.Grants, g)
		}
	}
	return p
}

// holds checks a property of many random worlds.
func holds(t *testing.T, property func(r *rand.Rand, w world) string) {
	t.Helper()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	count := 20_000
	if testing.Short() {
		count = 4000
	}
	for range count {
		w := randomWorld(r)
		if fault := property(r, w); fault != "" {
			t.Fatalf("seed %d: %s\n%+v", seed, fault, w)
		}
	}
}

func TestNarrowingNeverWidens(t *testing.T) {
	kinds := map[string]int{}
	holds(t, func(_ *rand.Rand, w world) string {
		wide, narrow, narrower := w.policy(t), w.policy(t, w.filter), w.policy(t, w.filter, w.second)
		a, b, c := wide.Decide(w.q), narrow.Decide(w.q), narrower.Decide(w.q)
		kinds[fmt.Sprint(a.Kind, b.Kind, c.Kind)]++
		if a.strictness() < b.strictness() || b.strictness() < c.strictness() {
			return fmt.Sprintf("%v (%s), %v (%s), %v (%s)", a.Kind, a.Rule, b.Kind, b.Rule, c.Kind, c.Rule)
		}
		if a.Rule == "" || b.Rule == "" {
			return "a decision has no explanation"
		}
		return ""
	})
	for _, want := range []string{"allow allow allow", "allow ask ask", "allow allow deny", "ask ask ask", "ask deny deny", "deny deny deny"} {
		if kinds[strings.ReplaceAll(want, " ", "")]+kinds[want] == 0 {
			t.Errorf("no world had the decisions %s: %v", want, kinds)
		}
	}
}

func TestNoCallOfAHiddenToolRuns(t *testing.T) {
	hidden := 0
	holds(t, func(_ *rand.Rand, w world) string {
		p := w.policy(t, w.filter, w.second)
		if d := p.Decide(w.q); p.Hides(w.q.Tool) {
			if hidden++; d.Kind != Deny {
				return fmt.Sprintf("%s is hidden, and its call is decided as %v (%s)", w.q.Tool, d.Kind, d.Rule)
			}
		} else if wide := w.policy(t); wide.Hides(w.q.Tool) {
			return "a filter shows what the profile hides"
		}
		return ""
	})
	if hidden == 0 {
		t.Error("no tool was hidden")
	}
}

func TestTheOrderOfRulesMeansNothing(t *testing.T) {
	holds(t, func(r *rand.Rand, w world) string {
		mixed := w
		shuffled := func(all []string) []string {
			all = slices.Clone(all)
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			return all
		}
		x := &mixed.rules
		x.Allow, x.Ask, x.Deny, x.Interrupt = shuffled(x.Allow), shuffled(x.Ask), shuffled(x.Deny), shuffled(x.Interrupt)
		mixed.grants = shuffled(w.grants)
		a, b, c := w.policy(t, w.filter, w.second).Decide(w.q), mixed.policy(t, w.filter, w.second).Decide(w.q), w.policy(t, w.second, w.filter).Decide(w.q)
		if a.Kind != b.Kind || a.Interrupt != b.Interrupt || a.Kind != c.Kind || a.Interrupt != c.Interrupt {
			return fmt.Sprintf("%v (%s), %v (%s), %v (%s)", a.Kind, a.Rule, b.Kind, b.Rule, c.Kind, c.Rule)
		}
		return ""
	})
}

func TestGrantsAndModesOnlyAnswerQuestions(t *testing.T) {
	holds(t, func(_ *rand.Rand, w world) string {
		plain := w
		plain.grants, plain.mode = nil, Default
		base, with := plain.policy(t, w.filter).Decide(w.q), w.policy(t, w.filter).Decide(w.q)
		switch {
		case base.Kind == Deny && with.Kind != Deny && (w.mode != Plan || w.q.Tool != exitPlanMode),
			base.Interrupt && !with.Interrupt,
			w.mode == Plan && with.Kind == Allow && edits(w.q.Tool),
			w.mode == Bypass && with.Kind == Ask:
			return fmt.Sprintf("without %v (%s), with %v (%s)", base.Kind, base.Rule, with.Kind, with.Rule)
		}
		for _, rule := range w.policy(t, w.filter).Suggest(w.q) {
			granted := w
			granted.grants = []string{rule}
			if d := granted.policy(t, w.filter).Decide(w.q); with.Kind == Ask && d.Kind != Allow {
				return fmt.Sprintf("the suggested rule %s leads to %v (%s)", rule, d.Kind, d.Rule)
			}
		}
		return ""
	})
}

// TestPatternsCoverWhatTheyAreMadeOf is checked with random words.
func TestPatternsCoverWhatTheyAreMadeOf(t *testing.T) {
	words := func(values []reflect.Value, r *oldrand.Rand) {
		for i := range values {
			values[i] = reflect.ValueOf(strings.Repeat(string(rune('a'+r.Intn(26))), 1+r.Intn(3)))
		}
	}
	if err := quick.Check(func(a, b, c string) bool {
		p, err := commandPattern(a + " " + b + " *")
		return err == nil && p.match(a+" "+b) && p.match(a+" "+b+" "+c) && !p.match(a+" "+b+c) && !p.match(a)
	}, &quick.Config{Values: words}); err != nil {
		t.Error(err)
	}
}

// TestAWordThatIsHiddenMatchesAsItDid hides words of random commands behind an expansion: each pattern that matched the
// command still may.
func TestAWordThatIsHiddenMatchesAsItDid(t *testing.T) {
	matched := 0
	holds(t, func(r *rand.Rand, _ world) string {
		some := []string{"git", "push", "-C", "x", "--force", "pu", "''"}
		var spec, command, hidden []string
		for i := range 1 + r.IntN(5) {
			word := pick(r, some[:6])
			command = append(command, word)
			if hidden = append(hidden, word); i > 0 && r.IntN(2) == 0 {
				hidden[i] = pick(r, []string{"$X", `"$X"`, "?" + word[1:], "*", word[:1] + "$X", "$(x)", "[" + word[:1] + "x]" + word[1:], "{" + word + ",}"})
			}
			if r.IntN(4) == 0 {
				word = pick(r, []string{"*", word[:1] + "*", pick(r, some)})
			}
			spec = append(spec, word)
		}
		rule, err := parseRule("Bash(" + strings.Join(spec, " ") + pick(r, []string{"", " *"}) + ")")
		if err != nil || rule.command == nil || !rule.command.match(strings.Join(command, " ")) {
			return ""
		}
		matched++
		s := parseScript(strings.Join(hidden, " "), &meter{})
		if !s.anyMatches(&rule) && s.mayMatch(&rule) == nil {
			return fmt.Sprintf("%s matches %q, and not %q", rule.text, command, hidden)
		}
		return ""
	})
	if matched < 100 {
		t.Errorf("only %d commands matched", matched)
	}
}

// FuzzScripts checks the parse of a command against a second view: the program as the parser
// prints it. What is allowed consists of allowed commands in both, and what a rule denies
// stays denied.
func FuzzScripts(f *testing.F) {
	for _, seed := range []string{
		"git log; ls", "git $(ls)", "git <<E\n$(ls)\nE", "for f in a b; do ls $f; done", "{ git log; }", "(ls)", "! git x", "time ls", "case x in x) git y;; esac", "ls \\\n-l", "git log | ls & ls",
		"if git x; then ls; else git y; fi", "ls 'a b' \"c\" $'d'", "bash -c 'git x'", "bash <<'E'\nls\nE", "coproc ls", "git x > y", "a=1 git x", "ls ${x:-`git y`}", "env git x", "ssh h git x", "f() { git x; }; f",
	} {
		f.Add(seed)
	}
	allow := profile(f, Rules{Allow: []string{"Bash(git *)", "Bash(ls *)"}})
	deny := profile(f, Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(git *)", "Bash(ls *)"}})
	f.Fuzz(func(t *testing.T, text string) {
		d := allow.Decide(Request{Tool: bash, Command: text})
		if d.Kind != Allow || strings.ContainsAny(text, "\f\v") {
			return // the printer takes a form feed for the end of a line
		}
		if deny.Decide(Request{Tool: bash, Command: text}).Kind != Deny {
			t.Errorf("%q is allowed, and not denied by the same rules", text)
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
		if err != nil {
			t.Fatalf("%q is allowed and cannot be parsed: %v", text, err)
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok {
				program, known := "", false
				if len(call.Args) > 0 {
					program, known = literal(call.Args[0])
				}
				if !known || program != "git" && program != "ls" {
					t.Errorf("%q is allowed and runs %q", text, program)
				}
			}
			return true
		})
		var printed bytes.Buffer
		if err := syntax.NewPrinter().Print(&printed, file); err != nil {
			t.Fatal(err)
		}
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(printed.Bytes()), ""); err != nil {
			return // the printer writes some dollar signs so that they cannot be read
		}
		if again := allow.Decide(Request{Tool: bash, Command: printed.String()}); again.Kind != Allow {
			t.Errorf("%q is allowed, and as %q it is not: %s", text, printed.String(), again.Rule)
		}
	})
}
