package integration

import (
	"strconv"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
)

type limits = catalog.Limits

// steps repeats a step of a scenario; N in it is the step's number.
func steps(n int, step string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("      - " + strings.ReplaceAll(step, "N", strconv.Itoa(i+1)) + "\n")
	}
	return b.String()
}

func TestAnAgentThatGetsNowhereIsStopped(t *testing.T) {
	t.Parallel()
	n := func(n int) *int { return &n }
	f := start(t, `
turns:
  - when: fail
    steps:
`+steps(9, `{text: [try N], tools: [{name: Fail, input: {n: N}}]}`)+`
  - when: repeat
    steps:
`+steps(9, `{text: [try N], tools: [{name: Read, input: {file_path: a}}]}`)+`
  - when: silent
    steps:
`+steps(9, `{tools: [{name: Read, input: {n: N}}]}`)+`
  - when: plan
    steps:
`+steps(9, `{text: [plan N], tools: [{name: TodoWrite, input: {todos: []}}]}`)+`
  - when: patient
    steps:
`+steps(9, `{text: [plan N], tools: [{name: TodoWrite, input: {todos: []}}, {name: Read, input: {n: N}}]}`)+`
      - text: [done]
`, func(c *session.Config) {
		c.Guardrails = map[string]guardrail.Config{guardrail.Default: {MaxToolFailures: n(4), MaxRepeats: n(5), MaxSilent: n(6), MaxTodo: n(3), RepeatsEnd: guardrail.EndPartial}}
		spec := c.Agents["tester"]
		spec.Tools = append(spec.Tools, "Fail")
		c.Agents["tester"] = spec
	})
	for name, tt := range map[string]struct {
		state  sessionv1.TurnState
		reason string
		steps  int32
	}{
		"fail":    {sessionv1.TurnState_TURN_STATE_FAILED, "TOOL_FAILURES", 4},
		"repeat":  {sessionv1.TurnState_TURN_STATE_PARTIAL, "REPEATED_CALLS", 5},
		"silent":  {sessionv1.TurnState_TURN_STATE_PARTIAL, "SILENT_STEPS", 6},
		"plan":    {sessionv1.TurnState_TURN_STATE_PARTIAL, "TODO_STEPS", 3},
		"patient": {sessionv1.TurnState_TURN_STATE_COMPLETE, "", 10},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := f.session(ctx, t)
			end := finished(t, f.turn(ctx, t, s, name))
			if end.State != tt.state || end.Error.GetReason() != tt.reason || end.Steps != tt.steps {
				t.Errorf("the turn ended %v after %d steps (%v)", end.State, end.Steps, end.Error)
			}
			if tt.reason == "" {
				return
			}
			path := f.messages(ctx, t, s)
			if last := path[len(path)-1]; last.Blocks[0].GetToolResult() == nil {
				t.Errorf("the conversation ends with %v, not with the last step's results", last)
			}
			// The next turn goes on from there.
			if next := finished(t, f.turn(ctx, t, s, "something else")); next.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
				t.Errorf("the next turn ended %v", next)
			}
		})
	}
}

func TestTheModelIsWarnedBesideTheResultsWhenItIsHalfWay(t *testing.T) {
	t.Parallel()
	n := 4
	f := start(t, `
turns:
  - when: fail
    steps:
`+steps(3, `{text: [try N], tools: [{name: Fail, input: {n: N}}]}`)+`
      - text: [I give up]
`, func(c *session.Config) {
		c.Guardrails = map[string]guardrail.Config{"strict": {MaxToolFailures: &n}}
		c.Models.Models = map[string]limits{"play:test": {Guardrails: "strict"}}
		spec := c.Agents["tester"]
		spec.Tools = append(spec.Tools, "Fail")
		c.Agents["tester"] = spec
	})
	ctx := t.Context()
	s := f.session(ctx, t)
	if end := finished(t, f.turn(ctx, t, s, "fail")); end.FinalText != "I give up" {
		t.Errorf("the turn ended %v", end)
	}
	want := `user: "fail"
assistant: "try 1", use Fail
user: ERROR
assistant: "try 2", use Fail
user: ERROR, "Note by the session: The last 2 tool calls failed. Try another way, or tell the user what stops you. Otherwise the turn will be ended."
assistant: "try 3", use Fail
user: ERROR
assistant: "I give up"`
	if got := shape(f.messages(ctx, t, s)); got != want {
		t.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
}

func TestAModelWhoseGuardrailsAreNotConfiguredIsAnErrorAtStart(t *testing.T) {
	t.Parallel()
	c := session.Defaults()
	c.Data = t.TempDir()
	c.Models.Models = map[string]limits{"openai:gpt-5.5": {Guardrails: "strict"}}
	_, err := session.New(t.Context(), c, session.Deps{})
	if err == nil || !strings.Contains(err.Error(), `models: "openai:gpt-5.5": there is no profile of guardrails "strict"; there are default`) {
		t.Errorf("got %v", err)
	}
}

func TestStepsThatOnlyChangeTheListDoNotCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: work
    steps:
      - tools: [{name: TodoWrite, input: {todos: []}}]
      - tools: [{name: Read, input: {n: 1}}]
      - tools: [{name: TodoWrite, input: {todos: []}}]
      - tools: [{name: Read, input: {n: 2}}]
      - text: [beyond]
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	end := finished(t, f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "work", Limits: &sessionv1.TurnLimits{MaxSteps: 2}}, nil))
	if end.State != sessionv1.TurnState_TURN_STATE_PARTIAL || end.Error.GetReason() != "MAX_STEPS" || end.Steps != 4 {
		t.Errorf("the turn ended %v", end)
	}
}
