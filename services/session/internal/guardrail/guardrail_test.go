package guardrail

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	ok      = sessionv1.ToolOutcome_TOOL_OUTCOME_OK
	failed  = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
	denied  = sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED
	refused = sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED
)

type call struct {
	tool, args string
	outcome    sessionv1.ToolOutcome
}

func text(s string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}}}
}

func person(s string) []*sessionv1.Message {
	return []*sessionv1.Message{{Role: sessionv1.Role_ROLE_USER, Blocks: []*sessionv1.Block{text(s)}}}
}

// step is an assistant's message with calls and the message with their results.
func step(say string, calls ...call) []*sessionv1.Message {
	asked := &sessionv1.Message{Role: sessionv1.Role_ROLE_ASSISTANT}
	answered := &sessionv1.Message{Role: sessionv1.Role_ROLE_USER}
	if say != "" {
		asked.Blocks = append(asked.Blocks, text(say))
	}
	for i, c := range calls {
		id := strconv.Itoa(i)
		asked.Blocks = append(asked.Blocks, &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: id, Tool: c.tool, ArgumentsJson: c.args}}})
		answered.Blocks = append(answered.Blocks, &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{CallId: id, Outcome: c.outcome}}})
	}
	return []*sessionv1.Message{asked, answered}
}

func join(parts ...[]*sessionv1.Message) []*sessionv1.Message {
	all := person("go")
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func times(n int, step func(i int) []*sessionv1.Message) (all []*sessionv1.Message) {
	for i := range n {
		all = append(all, step(i)...)
	}
	return all
}

func TestARuleStrikesWhenItsCountIsReached(t *testing.T) {
	rules := Rules{Failures: Rule{Most: 3}, Repeats: Rule{Most: 3}, Silent: Rule{6, true}, Todo: Rule{2, true}}
	a := call{"Bash", `{"command":"a"}`, ok}
	b := call{"Bash", `{"command":"b"}`, ok}
	edit := func(i int) call { return call{"Edit", fmt.Sprintf(`{"n":%d}`, i), ok} }
	fail := func(i int) call { return call{"Read", strconv.Itoa(i), failed} }
	todo := step("", call{todoTool, "{}", ok})
	for name, tt := range map[string]struct {
		turn   []*sessionv1.Message
		reason string
		says   string
	}{
		"a turn that has just begun":                     {join(), "", ""},
		"failures in one step":                           {join(step("x", fail(1), fail(2), fail(3))), "TOOL_FAILURES", "3 tool calls in a row failed, the last one of Read"},
		"failures over several steps":                    {join(step("x", fail(1)), step("y", fail(2)), step("z", fail(3))), "TOOL_FAILURES", ""},
		"a denied call is a failure":                     {join(step("x", fail(1)), step("y", call{"Bash", "1", denied}), step("z", fail(3))), "TOOL_FAILURES", ""},
		"a success between failures":                     {join(step("x", fail(1), fail(2)), step("y", a), step("z", fail(3))), "", ""},
		"a person's refusal is no failure":               {join(step("x", fail(1), fail(2)), step("z", call{"Write", "1", refused})), "", ""},
		"a person's refusal is no success either":        {join(step("x", fail(1), fail(2)), step("z", call{"Write", "1", refused}, fail(4))), "TOOL_FAILURES", ""},
		"the same call in one step":                      {join(step("x", a, a, a)), "REPEATED_CALLS", "the same call of Bash 3 times"},
		"the same call in several steps":                 {join(step("x", a), step("y", a), step("z", a)), "REPEATED_CALLS", ""},
		"another call between the same":                  {join(step("x", a, a), step("y", edit(1)), step("z", a)), "", ""},
		"two calls in turn":                              {join(step("x", a), step("y", b), step("z", a), step("x", b), step("y", a), step("z", b)), "REPEATED_CALLS", "the same calls of Bash and Bash 3 times"},
		"tests after each edit":                          {join(times(9, func(i int) []*sessionv1.Message { return step("x", edit(i), a) })), "", ""},
		"looking at an operation again":                  {join(times(9, func(int) []*sessionv1.Message { return step("x", call{pollTool, "{}", ok}) })), "", ""},
		"looking at an operation between the same calls": {join(step("x", a), step("x", call{pollTool, "{}", ok}), step("x", a), step("x", a)), "REPEATED_CALLS", ""},
		"silent steps":                                   {join(times(6, func(i int) []*sessionv1.Message { return step("", edit(i)) })), "SILENT_STEPS", "6 steps in a row without saying anything"},
		"blank text is silence":                          {join(times(6, func(i int) []*sessionv1.Message { return step(" \n", edit(i)) })), "SILENT_STEPS", ""},
		"a word between silent steps":                    {join(times(5, func(i int) []*sessionv1.Message { return step("", edit(i)) }), step("so", edit(9))), "", ""},
		"steps that only change the list":                {join(todo, todo), "TODO_STEPS", "2 steps in a row that only changed its list"},
		"a step that does something besides the list":    {join(todo, step("", call{todoTool, "{}", ok}, a)), "", ""},
		"a person's words begin every count anew":        {join(step("x", fail(1), fail(2)), todo, person("wait"), step("", fail(3)), todo), "", ""},
		"a call without a result does not count":         {join(step("x", a, a), step("y", a)[:1]), "", ""},
		"a result without a call is left out":            {join(step("x", fail(1), fail(2)), step("", fail(3))[1:]), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := rules.Check(tt.turn)
			got, says := "", ""
			if f != nil {
				got, says = strings.TrimPrefix(f.Reason.String(), "ERROR_REASON_"), f.Message
			}
			if got != tt.reason || !strings.Contains(says, tt.says) {
				t.Errorf("got %q %q, want %q %q", got, says, tt.reason, tt.says)
			}
			if f != nil && f.Partial != (got == "SILENT_STEPS" || got == "TODO_STEPS") {
				t.Errorf("%s ends the turn PARTIAL: %v", got, f.Partial)
			}
			if off := (Rules{}).Check(tt.turn); off != nil {
				t.Errorf("rules that are off found %v", off)
			}
		})
	}
}

func TestTheModelIsToldOnceWhenItIsHalfWay(t *testing.T) {
	rules := Rules{Failures: Rule{Most: 6}, Todo: Rule{Most: 2}}
	turn := join()
	var told []int
	for i := range 6 {
		at := len(turn)
		turn = append(turn, step("x", call{"Read", strconv.Itoa(i), failed})...)
		if hint := rules.Hint(turn, at); hint != "" {
			told = append(told, i+1)
			if !strings.Contains(hint, "The last 3 tool calls failed.") {
				t.Errorf("the hint is %q", hint)
			}
		}
	}
	if len(told) != 1 || told[0] != 3 {
		t.Errorf("told after %v failures, want 3", told)
	}
	at := len(turn)
	turn = append(turn, step("", call{todoTool, "{}", ok})...)
	if hint := rules.Hint(turn, at); hint != "" {
		t.Errorf("a rule of 2 has no half way, but says %q", hint)
	}
}

// TestCountsAgreeWithTheirDefinition compares the breaker with a slow reading of
// the rules, on turns of all shapes.
func TestCountsAgreeWithTheirDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{
			Failures: Rule{Most: rapid.IntRange(0, 4).Draw(t, "failures")}, Repeats: Rule{Most: rapid.IntRange(0, 4).Draw(t, "repeats")},
			Silent: Rule{Most: rapid.IntRange(0, 4).Draw(t, "silent")}, Todo: Rule{Most: rapid.IntRange(0, 4).Draw(t, "todo")},
		}
		var turn []*sessionv1.Message
		var flat []call
		var says []bool
		var onlyTodo []bool
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call {
				return call{
					rapid.SampledFrom([]string{"Bash", "Read", todoTool, pollTool}).Draw(t, "tool"),
					rapid.SampledFrom([]string{"1", "2"}).Draw(t, "args"),
					rapid.SampledFrom([]sessionv1.ToolOutcome{ok, failed, refused}).Draw(t, "outcome"),
				}
			}), 1, 3).Draw(t, "calls")
			say := rapid.SampledFrom([]string{"", "word"}).Draw(t, "say")
			turn = append(turn, step(say, calls...)...)
			flat = append(flat, calls...)
			says = append(says, say != "")
			only := true
			for _, c := range calls {
				only = only && c.tool == todoTool
			}
			onlyTodo = append(onlyTodo, only)
		}
		want := ""
		switch {
		case rules.Failures.Most > 0 && tailFailures(flat) >= rules.Failures.Most:
			want = "TOOL_FAILURES"
		case rules.Repeats.Most > 0 && tailRounds(flat, rules.Repeats.Most):
			want = "REPEATED_CALLS"
		case rules.Silent.Most > 0 && tailOf(says, false) >= rules.Silent.Most:
			want = "SILENT_STEPS"
		case rules.Todo.Most > 0 && tailOf(onlyTodo, true) >= rules.Todo.Most:
			want = "TODO_STEPS"
		}
		got := ""
		if f := rules.Check(turn); f != nil {
			got = strings.TrimPrefix(f.Reason.String(), "ERROR_REASON_")
		}
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if len(turn) > 0 && rules.Hint(turn, len(turn)) != "" {
			t.Fatal("there is a hint though nothing was added")
		}
	})
}

func tailFailures(calls []call) (n int) {
	for i := len(calls) - 1; i >= 0 && calls[i].outcome != ok; i-- {
		if calls[i].outcome == failed {
			n++
		}
	}
	return n
}

func tailOf(steps []bool, want bool) (n int) {
	for i := len(steps) - 1; i >= 0 && steps[i] == want; i-- {
		n++
	}
	return n
}

// tailRounds reports whether the calls end with some round of 1 to 4 calls, made
// that often.
func tailRounds(calls []call, most int) bool {
	var all []string
	for _, c := range calls {
		if c.tool != todoTool && c.tool != pollTool {
			all = append(all, c.tool+c.args+";")
		}
	}
	for size := 1; size <= 4 && size*most <= len(all); size++ {
		if tail := all[len(all)-size*most:]; strings.Join(tail, "") == strings.Repeat(strings.Join(tail[:size], ""), most) {
			return true
		}
	}
	return false
}
