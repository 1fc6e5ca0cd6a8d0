package integration

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

func withSpec(change func(*agent.Spec)) func(*session.Config) {
	return func(c *session.Config) {
		spec := c.Agents["tester"]
		change(&spec)
		c.Agents["tester"] = spec
	}
}

func TestTheToolFinishSetsHowTheTurnEnds(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: all
    steps: [{text: [All of it is done.], tools: [{name: Read, input: {}}, {name: finish, input: {request_status: COMPLETE, summary: done}}, {name: Bash, input: {}}]}]
  - when: half
    steps: [{tools: [{name: finish, input: {request_status: PARTIAL, summary: The tests are missing.}}]}]
  - when: none
    steps: [{tools: [{name: finish, input: {request_status: FAILED, summary: There is no compiler.}}, {name: finish, input: {request_status: COMPLETE, summary: ""}}]}]
  - when: wrong
    steps:
      - tools: [{name: finish, input: {request_status: DONE, summary: x}}]
      - tools: [{name: finish, input: {request_status: COMPLETE, summary: now}}]
  - when: plain
    steps: [{text: [Only text.]}]
`, withSpec(func(s *agent.Spec) { s.Verdict = agent.VerdictTool }))
	for name, tt := range map[string]struct {
		state           sessionv1.TurnState
		reason, message string
		text, results   string
	}{
		"all":   {sessionv1.TurnState_TURN_STATE_COMPLETE, "", "", "All of it is done.", "user: OK, OK, OK"},
		"half":  {sessionv1.TurnState_TURN_STATE_PARTIAL, "AGENT_PARTIAL", "in part: The tests are missing.", "The tests are missing.", "user: OK"},
		"none":  {sessionv1.TurnState_TURN_STATE_FAILED, "AGENT_FAILED", "could not do the task: There is no compiler.", "There is no compiler.", "user: OK, ERROR"},
		"wrong": {sessionv1.TurnState_TURN_STATE_COMPLETE, "", "", "now", "user: OK"},
		"plain": {sessionv1.TurnState_TURN_STATE_COMPLETE, "", "", "Only text.", `assistant: "Only text."`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := f.session(ctx, t)
			events := f.turn(ctx, t, s, name)
			end := finished(t, events)
			if end.State != tt.state || end.Error.GetReason() != tt.reason || !strings.Contains(end.Error.GetMessage(), tt.message) || end.FinalText != tt.text {
				t.Errorf("the turn ended %v", end)
			}
			if got := shape(f.messages(ctx, t, s)); !strings.HasSuffix(got, "\n"+tt.results) {
				t.Errorf("the conversation is\n%s", got)
			}
			f.log(ctx, t, s)
			if next := finished(t, f.turn(ctx, t, s, "plain")); next.FinalText != "Only text." {
				t.Errorf("the next turn ended %v", next)
			}
		})
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if len(f.peers.executed) != 2 || len(f.peers.cancelled) != 0 {
		t.Errorf("tools was asked for %v and to cancel %v, want Read and Bash alone", f.peers.executed, f.peers.cancelled)
	}
}

func schemaSpec(s *agent.Spec) {
	s.OutputSchema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":1}}}`
}

func TestStructuredOutputIsCheckedMendedAndAskedFor(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: good
    steps: [{text: [Three.], tools: [{name: finish, input: {request_status: COMPLETE, summary: x, output: {n: 3}}}]}]
  - when: mend
    steps:
      - tools: [{name: finish, input: {request_status: COMPLETE, summary: x, output: {n: 0}}}]
      - tools: [{name: finish, input: {request_status: COMPLETE, summary: mended, output: {n: 1}}}]
  - when: forget
    steps: [{text: [Here you are.]}]
  - when: without the requested output
    turn: 2
    steps: [{tools: [{name: finish, input: {request_status: COMPLETE, summary: x, output: {n: 7}}}]}]
  - when: never
    steps: [{text: [No.]}]
  - when: without the requested output
    steps: [{text: [Still no.]}]
`, withSpec(schemaSpec))
	ctx := t.Context()
	for name, tt := range map[string]struct{ text, reason, output, shape string }{
		"good":   {"Three.", "", `{"n":3}`, "user: \"good\"\nassistant: \"Three.\", use finish\nuser: OK"},
		"mend":   {"mended", "", `{"n":1}`, "user: \"mend\"\nassistant: use finish\nuser: ERROR\nassistant: use finish\nuser: OK"},
		"forget": {"x", "", `{"n":7}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := f.session(ctx, t)
			end := finished(t, f.turn(ctx, t, s, name))
			if end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.OutputJson != tt.output || end.FinalText != tt.text {
				t.Errorf("the turn ended %v", end)
			}
			if got := shape(f.messages(ctx, t, s)); tt.shape != "" && got != tt.shape {
				t.Errorf("the conversation is\n%s", got)
			}
			turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: s})
			if err != nil || turns.Turns[0].OutputJson != tt.output {
				t.Errorf("the turn is %v (%v)", turns.GetTurns(), err)
			}
		})
	}
}

func TestAnAgentThatNeverHandsOverItsOutputFails(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns: [{when: never, steps: [{text: [No.]}]}]
fallback: {steps: [{text: [Still no.]}]}
`, withSpec(schemaSpec))
	ctx := t.Context()
	s := f.session(ctx, t)
	end := finished(t, f.turn(ctx, t, s, "never"))
	if end.State != sessionv1.TurnState_TURN_STATE_FAILED || end.Error.GetReason() != "OUTPUT_MISSING" || end.Steps != 3 || end.FinalText != "Still no." {
		t.Errorf("the turn ended %v", end)
	}
	a, err := f.agents.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: "agents/tester"})
	if err != nil || a.Agent.Verdict != "none" || !strings.Contains(a.Agent.OutputSchemaJson, `"type":"object"`) {
		t.Errorf("the agent is %v (%v)", a, err)
	}
}

func TestFaultsOfAVerdictAreFoundAtStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*agent.Spec)
		want   string
	}{
		"a verdict that there is not":   {func(s *agent.Spec) { s.Verdict = "oracle" }, `verdict "oracle" is not none, tool or header`},
		"a tool of the same name":       {func(s *agent.Spec) { s.Verdict, s.Tools = "tool", []string{"finish"} }, "the name of the session's own tool"},
		"an invalid schema":             {func(s *agent.Spec) { s.OutputSchema = `{"type":5}` }, "output-schema"},
		"a header and an output schema": {func(s *agent.Spec) { schemaSpec(s); s.Verdict = "header" }, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := agent.Spec{Profile: "full"}
			tt.change(&spec)
			c := session.Defaults()
			c.Data = t.TempDir()
			c.Agents = map[string]agent.Spec{"x": spec}
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `agent "x": `) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAHeaderSetsHowTheTurnEndsAndIsNotShown(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: half
    steps: [{text: ["request_", "status: PAR", "TIAL\nreason: no tests", "\n", "\nHalf of it", " is done."]}]
  - when: calls
    steps:
      - text: ["request_status: FAILED\n\nLooking"]
        tools: [{name: Read, input: {n: 1}}]
      - text: ["request_status: COMPLETE\n", "\n", "All is well."]
  - when: bare
    steps: [{text: ["request_status: FAILED\nreason: no compiler"]}]
  - when: none
    steps: [{text: ["request_", "ed by nobody"]}]
`, withSpec(func(s *agent.Spec) { s.Verdict = agent.VerdictHeader }))
	for name, tt := range map[string]struct {
		state                 sessionv1.TurnState
		reason, message       string
		streamed, final, kept string
	}{
		"half":  {sessionv1.TurnState_TURN_STATE_PARTIAL, "AGENT_PARTIAL", ": no tests", "Half of it is done.", "Half of it is done.", `"request_status: PARTIAL\nreason: no tests\n\nHalf of it is done."`},
		"calls": {sessionv1.TurnState_TURN_STATE_COMPLETE, "", "", "LookingAll is well.", "All is well.", `"request_status: COMPLETE\n\nAll is well."`},
		"bare":  {sessionv1.TurnState_TURN_STATE_FAILED, "AGENT_FAILED", ": no compiler", "", "no compiler", `"request_status: FAILED\nreason: no compiler"`},
		"none":  {sessionv1.TurnState_TURN_STATE_COMPLETE, "", "", "request_ed by nobody", "request_ed by nobody", `"request_ed by nobody"`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := f.session(ctx, t)
			events := f.turn(ctx, t, s, name)
			end := finished(t, events)
			if end.State != tt.state || end.Error.GetReason() != tt.reason || !strings.HasSuffix(end.Error.GetMessage(), tt.message) || end.FinalText != tt.final {
				t.Errorf("the turn ended %v", end)
			}
			if got := text(events); got != tt.streamed {
				t.Errorf("people saw %q, want %q", got, tt.streamed)
			}
			if got := shape(f.messages(ctx, t, s)); !strings.HasSuffix(got, "assistant: "+tt.kept) {
				t.Errorf("the conversation is\n%s", got)
			}
		})
	}
}
