// Package script makes the scenario that the scripted model plays in a chaos run, and knows the expected
// results.
//
// A turn's text names its plan and is unique, such as `p07-s012-t0003`. Every command appends a line of its
// own to the file Effects, so that the checker notices a command that ran twice or never.
package script

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Name is the scenario's name.
const Name = "chaos"

// Effects is the file in the workspace to which commands append.
const Effects = "effects"

// plans is how many different turns with effects there are.
const plans = 18

// kinds is how many different steps with calls there are.
const kinds = 9

// goesOn is the kind of those with a command that goes on as an operation.
const goesOn = 1

const userText = "{{ .UserText }}"

// Call is a tool call of a plan.
type Call struct {
	Tool   string
	Input  map[string]any
	Effect string // the line that it appends, userText in it; empty for a call that changes nothing
	Asked  bool   // a person has to allow it
	Asks   bool   // it asks a person a question
	Noted  string // the line that a server on the network counts
	Prompt string // what a subagent is to do
	Last   string // the line that it appends and prints when it ends, some time after the call has handed back an operation
	Looks  bool   // it looks at the operation that a call of the step before has handed back
}

// HandsBack returns the index of the call that hands back an operation; -1 without
// one.
func (s Step) HandsBack() int {
	return slices.IndexFunc(s.Calls, func(c Call) bool { return c.Last != "" })
}

// Step is a step of a plan.
type Step struct {
	Thinking, Text []string
	Delay          string // before each piece
	Calls          []Call
}

// Plan is one kind of turn.
type Plan struct{ Steps []Step }

// Script is a scenario. The last of its plans changes nothing. Helpers and workers are subagents.
type Script struct{ Plans, Helpers, Workers []Plan }

// levels returns the plans of people, helpers and workers.
func (s *Script) levels() [len(letters)][]Plan { return [...][]Plan{s.Plans, s.Helpers, s.Workers} }

// Quiet returns the index of the plan that changes nothing: for messages that are sent more than once. The
// plans before it have effects.
func (s *Script) Quiet() int { return len(s.Plans) - 1 }

// New returns the scenario of a seed.
func New(seed uint64) *Script {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a schedule, not a secret
	s := &Script{}
	for i := range plans {
		s.Plans = append(s.Plans, plan(r, i%kinds))
	}
	s.Plans = append(s.Plans, quiet(r))
	for range subplans {
		s.Helpers, s.Workers = append(s.Helpers, subplan(r, helper)), append(s.Workers, subplan(r, worker))
	}
	return s
}

// plan makes a plan that begins with a step of a kind.
func plan(r *rand.Rand, first int) Plan {
	var p Plan
	steps := 1 + r.IntN(4)
	if first == goesOn {
		steps++ // that looks at the operation
	}
	for n := range steps {
		s := Step{Delay: fmt.Sprintf("%dms", 2+r.IntN(15)), Text: pieces(r, n+1, 2+r.IntN(12))}
		if r.IntN(3) == 0 {
			s.Thinking = pieces(r, n+1, 1+r.IntN(4))
		}
		kind := first
		if n > 0 {
			kind = r.IntN(kinds)
		}
		if n == 1 && first == goesOn {
			kind = kinds - 1
		}
		switch kind {
		case 0: // a few commands, some of which a person has to allow
			for range 1 + r.IntN(2) {
				s.Calls = append(s.Calls, asked(r, n+1, len(s.Calls)+1))
			}
			s.Calls = append(s.Calls, command(r, n+1, len(s.Calls)+1))
		case goesOn: // and a command beside it
			s.Calls = append(s.Calls, background(r, n+1, 1), command(r, n+1, 2))
		case 2: // a few commands
			for range 1 + r.IntN(3) {
				s.Calls = append(s.Calls, command(r, n+1, len(s.Calls)+1))
			}
		case 3: // calls that run at the same time, and a command
			for range 2 + r.IntN(2) {
				s.Calls = append(s.Calls, look(r))
			}
			s.Calls = append(s.Calls, command(r, n+1, len(s.Calls)+1))
		case 4: // a question, and a command
			s.Calls = append(s.Calls, question(), command(r, n+1, 2))
		case 5: // calls of MCP servers
			s.Calls = append(s.Calls, noteThere(n+1, 1), noteHere(n+1, 2))
		case 6: // work for subagents, and a command
			for range 1 + r.IntN(2) {
				s.Calls = append(s.Calls, task(r, helper, n+1, len(s.Calls)+1))
			}
			s.Calls = append(s.Calls, command(r, n+1, len(s.Calls)+1))
		default:
			s.Calls = append(s.Calls, command(r, n+1, 1))
		}
		if n > 0 && p.Steps[n-1].HandsBack() >= 0 && s.HandsBack() < 0 { // a step's results shall name one operation
			s.Calls = append(s.Calls, check(r))
		}
		p.Steps = append(p.Steps, s)
	}
	p.Steps = append(p.Steps, last(r))
	return p
}

func quiet(r *rand.Rand) Plan {
	look := Step{Delay: "3ms", Text: pieces(r, 1, 3), Calls: []Call{look(r), look(r)}}
	return Plan{Steps: []Step{look, last(r)}}
}

// last ends a turn.
func last(r *rand.Rand) Step {
	return Step{Delay: "3ms", Text: append(pieces(r, 0, 1+r.IntN(8)), "That was ", userText, ".")}
}

func pieces(r *rand.Rand, step, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s %d.%d ", [...]string{"lorem", "ipsum", "dolor", "sit", "amet"}[r.IntN(5)], step, i+1))
	}
	return out
}

// command appends its line at once and then takes its time, so that it can be killed before and after its effect.
func command(r *rand.Rand, step, n int) Call {
	effect := fmt.Sprintf("%s/%d.%d", userText, step, n)
	text := fmt.Sprintf("echo '%s' >> %s", effect, Effects)
	switch r.IntN(4) {
	case 0:
		text = fmt.Sprintf("sleep 0.%02d; %s", 5+r.IntN(25), text)
	case 1:
		text = fmt.Sprintf("%s; echo begun; sleep 0.%02d; echo over", text, 5+r.IntN(40))
	case 2:
		text = fmt.Sprintf("echo begun; sleep 0.1; %s; sleep 0.1; echo over >&2", text)
	}
	return Call{Tool: "Bash", Input: map[string]any{"command": text}, Effect: effect}
}

// Ask is the permission rule that makes a person decide about the commands of calls that are Asked, and no others.
const Ask = "Bash(printf *)"

// asked returns a command that a person has to allow.
func asked(r *rand.Rand, step, n int) Call {
	effect := fmt.Sprintf("%s/%d.%d", userText, step, n)
	text := fmt.Sprintf("printf '%%s\\n' '%s' >> %s", effect, Effects)
	if r.IntN(2) == 0 {
		text += fmt.Sprintf("; sleep 0.%02d", 5+r.IntN(25))
	}
	return Call{Tool: "Bash", Input: map[string]any{"command": text}, Effect: effect, Asked: true}
}

// background returns a command that goes on as an operation.
func background(r *rand.Rand, step, n int) Call {
	effect := fmt.Sprintf("%s/%d.%d", userText, step, n)
	last := effect + "/end"
	text := fmt.Sprintf("echo '%s' >> %s; sleep %d.%d; echo '%s' >> %[2]s; echo '%[5]s'", effect, Effects, r.IntN(6), r.IntN(10), last)
	return Call{Tool: "Bash", Input: map[string]any{"command": text, "run_in_background": true}, Effect: effect, Last: last}
}

// check looks at an operation, and may wait for its end.
func check(r *rand.Rand) Call {
	return Call{Tool: "check_operation", Input: map[string]any{"operation": "{{ .LastOperation }}", "wait_seconds": r.IntN(3)}, Looks: true}
}

func look(r *rand.Rand) Call {
	if r.IntN(2) == 0 {
		return Call{Tool: "LS", Input: map[string]any{"path": "/workspace"}}
	}
	return Call{Tool: "Glob", Input: map[string]any{"pattern": "**/*.sh"}}
}

// YAML returns the scenario in the format of the scripted model. JSON is YAML, and
// quotes itself.
func (s *Script) YAML() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nturns:\n", Name)
	for level, plans := range s.levels() {
		for i, p := range plans {
			fmt.Fprintf(&b, "  - when: ^%s\n    steps:\n", prefix(letters[level], i))
			p.yaml(&b)
		}
	}
	fmt.Fprintf(&b, "fallback:\n  steps:\n    - text: %s\n", quote("This is what was said so far, in short.")) // a summary
	return b.String()
}

func (p Plan) yaml(b *strings.Builder) {
	for _, st := range p.Steps {
		fmt.Fprintf(b, "      - delay: %s\n        text: %s\n", st.Delay, quote(st.Text))
		if len(st.Thinking) > 0 {
			fmt.Fprintf(b, "        thinking: %s\n", quote(st.Thinking))
		}
		if len(st.Calls) > 0 {
			b.WriteString("        tools:\n")
		}
		for _, c := range st.Calls {
			fmt.Fprintf(b, "          - {name: %s, input: %s}\n", c.Tool, quote(c.Input))
		}
	}
}

func quote(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings always encode
	}
	return strings.TrimSpace(b.String())
}

func prefix(letter string, plan int) string { return fmt.Sprintf("%s%02d-", letter, plan) }

// Text returns the user's message for a plan; rest makes it unique.
func Text(plan int, rest string) string { return prefix(letters[0], plan) + rest }

// Expected is the expected result of a turn.
type Expected struct {
	Final string
	Steps []Step // with the user's text in the place of the placeholder
}

// Expect returns what the turn with the user's text must come to; false when no plan fits it.
func (s *Script) Expect(text string) (Expected, bool) {
	for level, plans := range s.levels() {
		for i, p := range plans {
			if strings.HasPrefix(text, prefix(letters[level], i)) {
				return p.expect(text), true
			}
		}
	}
	return Expected{}, false
}

func (p Plan) expect(text string) Expected {
	fill := func(s string) string { return strings.ReplaceAll(s, userText, text) }
	all := func(in []string) []string {
		var out []string
		for _, s := range in {
			out = append(out, fill(s))
		}
		return out
	}
	var e Expected
	for _, st := range p.Steps {
		filled := Step{Thinking: all(st.Thinking), Text: all(st.Text)}
		for _, c := range st.Calls {
			filled.Calls = append(filled.Calls, Call{Tool: c.Tool, Effect: fill(c.Effect), Asked: c.Asked, Asks: c.Asks, Noted: fill(c.Noted), Prompt: fill(c.Prompt), Last: fill(c.Last), Looks: c.Looks})
		}
		e.Steps = append(e.Steps, filled)
	}
	e.Final = strings.Join(e.Steps[len(e.Steps)-1].Text, "")
	return e
}
