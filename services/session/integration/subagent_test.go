package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// lead gives work to subagents; which, the message says.
const lead = `
turns:
  - when: ^one$
    steps:
      - {text: [I give it away], tools: [{name: Task, input: {description: read it, prompt: look, subagent_type: reader}}]}
      - {text: ["It said: {{ .LastToolResult }}"]}
  - when: ^ten$
    steps:
      - tools: &ten
          - {name: Task, input: {description: d, prompt: nest, subagent_type: nested}}
          - {name: Task, input: {description: d, prompt: nest, subagent_type: nested}}
          - {name: Task, input: {description: d, prompt: nest, subagent_type: nested}}
          - {name: Task, input: {description: d, prompt: nest, subagent_type: nested}}
          - {name: Task, input: {description: d, prompt: nest, subagent_type: nested}}
      - {text: [all done]}
  - when: ^nest$
    steps:
      - {tools: [{name: Bash, input: {command: a}}, {name: Task, input: {description: d, prompt: look, subagent_type: reader}}], usage: {input_tokens: 800, output_tokens: 100}}
      - {text: [nested done], usage: {input_tokens: 800, output_tokens: 100}}
  - when: ^look$
    steps: [{text: [Looking, " at it"], tools: [{name: Read, input: {}}], usage: {input_tokens: 800, output_tokens: 100}}, {text: [seen], usage: {input_tokens: 800, output_tokens: 100}}]
  - when: ^block$
    steps: [{tools: [{name: Task, input: {description: d, prompt: hang, subagent_type: blocker}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: ^hang$
    steps: [{tools: [{name: Block, input: {}}]}, {text: [let go]}]
  - when: ^wrong$
    steps: [{tools: [{name: Task, input: {description: d, prompt: p, subagent_type: missing}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: ^ask$
    steps: [{tools: [{name: Task, input: {description: d, prompt: please write, subagent_type: writer}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: ^please write$
    steps: [{tools: [{name: Write, input: {file_path: a}}]}, {text: [written]}]
  - when: ^fail$
    steps: [{tools: [{name: Task, input: {description: d, prompt: break, subagent_type: reader}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: ^break$
    steps: [{error: {status: 400, message: no}}]
  - when: ^other$
    steps: [{tools: [{name: Task, input: {description: d, prompt: look, subagent_type: other}}]}, {text: ["{{ .LastToolResult }}"]}]
fallback: {steps: [{text: [ok]}]}
`

func withSubagents(c *session.Config) {
	tools := []string{"Bash", "Block", "Read", "Task", "Write"}
	c.Agents["tester"] = agent.Spec{
		Prompt: "Test.", Profile: "full", Tools: tools,
		Extensions: agent.Extensions{Subagents: []agent.Subagent{
			{Name: "reader", Description: "Reads.", Prompt: "You read.", Tools: []string{"Read"}},
			{Name: "nested", Description: "Gives work on.", Prompt: "You give work on.", Tools: []string{"Bash", "Read", "Task"}},
			{Name: "blocker", Description: "Hangs.", Prompt: "You hang.", Tools: []string{"Block"}},
			{Name: "writer", Description: "Writes.", Prompt: "You write.", Tools: []string{"Write"}},
			{Name: "other", Agent: "agents/other", Description: "Another one."},
		}},
	}
	c.Agents["other"] = agent.Spec{Prompt: "Other.", Profile: "full", Tools: []string{"Read", "Background"}}
}

// children lists the sessions of a session's subagents.
func (f *fixture) children(ctx context.Context, t *testing.T, parent string) []*sessionv1.Session {
	t.Helper()
	list, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{Parent: parent, OldestFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	return list.Sessions
}

// told returns the events of subagents in a log, as `call kind`.
func told(events []*sessionv1.Event) map[string][]string {
	all := map[string][]string{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case *sessionv1.Event_SubagentStarted:
			all[b.SubagentStarted.CallId] = append(all[b.SubagentStarted.CallId], "started")
		case *sessionv1.Event_SubagentEvent:
			all[b.SubagentEvent.CallId] = append(all[b.SubagentEvent.CallId], sessionv1.EventName(b.SubagentEvent.Event))
		case *sessionv1.Event_SubagentFinished:
			all[b.SubagentFinished.CallId] = append(all[b.SubagentFinished.CallId], "finished "+strings.TrimPrefix(b.SubagentFinished.State.String(), "TURN_STATE_"))
		}
	}
	return all
}

func TestASubagentWorksInASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	f := start(t, lead, withSubagents)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "one")
	end := finished(t, events)
	if end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "It said: seen" {
		t.Fatalf("the turn ended %v", end)
	}
	children := f.children(ctx, t, s)
	if len(children) != 1 {
		t.Fatalf("there are %d subagents' sessions", len(children))
	}
	child := children[0]
	call := child.ParentCall
	if call.GetSession() != s || call.Root != s || call.Depth != 1 || call.Subagent != "reader" || child.Title != "read it" || child.User != "users/default" {
		t.Errorf("the child is %v", child)
	}
	want := []string{
		"started", "turn.queued", "turn.started", "step.started", "text.started", "text.delta", "text.finished",
		"tool_call.started", "tool_call.arguments", "workspace.created", "tool_call.decision", "tool_call.finished", "step.finished",
		"step.started", "text.started", "text.delta", "text.finished", "step.finished", "turn.finished", "finished COMPLETE",
	}
	if got := told(events)[call.CallId]; !slices.Equal(got, want) {
		t.Errorf("the parent's log has\n%v\nwant\n%v", got, want)
	}
	if got := f.peers.holders[lastCall(t, f.messages(ctx, t, child.Name))]; got != child.Name+" in "+s {
		t.Errorf("the subagent's call was made by %s", got)
	}
	if list, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{}); err != nil || len(list.Sessions) != 1 {
		t.Errorf("the list has %d sessions (%v)", len(list.GetSessions()), err)
	}
	planned := f.session(ctx, t)
	f.runTurn(ctx, t, &sessionv1.RunTurnRequest{
		Parent: planned, Text: "one", Options: &sessionv1.TurnOptions{PermissionMode: commonv1.PermissionMode_PERMISSION_MODE_PLAN},
	}, func(e *sessionv1.Event) {
		if b := e.GetSubagentEvent().GetEvent().GetTurnStarted(); b != nil && b.Options.GetPermissionMode() != commonv1.PermissionMode_PERMISSION_MODE_PLAN {
			t.Errorf("the subagent of a turn that plans has the mode %v", b.Options.GetPermissionMode())
		}
	})
	turn, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: events[0].Turn})
	if err != nil || turn.Turn.SubagentUsage.GetOutputTokens() == 0 || turn.Turn.SubagentUsage.OutputTokens != child.Usage.OutputTokens {
		t.Errorf("the parent's turn counts %v for it, the child used %v", turn.GetTurn().GetSubagentUsage(), child.Usage)
	}
	_, err = f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: child.Name, Text: "hello"})
	if status.Code(err) != codes.FailedPrecondition || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SUBAGENT_SESSION) {
		t.Errorf("a message to a subagent's session: %v", err)
	}
	trigger := &sessionv1.CreateTriggerRequest{Trigger: &sessionv1.Trigger{Session: child.Name, Text: "hello"}}
	if _, err := sessionv1.NewTriggerServiceClient(f.conn).CreateTrigger(ctx, trigger); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SUBAGENT_SESSION) {
		t.Errorf("a trigger of a subagent's session: %v", err)
	}
	if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: child.Name}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SUBAGENT_SESSION) {
		t.Errorf("a subagent's session is deleted alone: %v", err)
	}
	if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: child.Name}); status.Code(err) != codes.NotFound {
		t.Errorf("the subagent's session is left: %v", err)
	}
}

// lastCall returns the id of the last call of a conversation.
func lastCall(t *testing.T, messages []*sessionv1.Message) (id string) {
	t.Helper()
	for _, m := range messages {
		for _, b := range m.Blocks {
			if u := b.GetToolUse(); u != nil {
				id = u.CallId
			}
		}
	}
	if id == "" {
		t.Fatal("there is no call")
	}
	return id
}

func TestTenSubagentsTwoLevelsDeep(t *testing.T) {
	t.Parallel()
	f := start(t, lead, withSubagents, func(c *session.Config) { c.MaxSessions = 3 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "ten")
	if end := finished(t, events); end.FinalText != "all done" {
		t.Fatalf("the turn ended %v", end)
	}
	deep := 0
	for _, c := range f.children(ctx, t, s) {
		for _, d := range f.children(ctx, t, c.Name) {
			deep++
			if d.ParentCall.Root != s || d.ParentCall.Depth != 2 {
				t.Errorf("a subagent's subagent is %v", d.ParentCall)
			}
			if got := f.peers.holders[lastCall(t, f.messages(ctx, t, d.Name))]; got != d.Name+" in "+s {
				t.Errorf("a call of the second level was made by %s", got)
			}
		}
	}
	if deep != 5 {
		t.Errorf("there are %d subagents of subagents", deep)
	}
	for call, n := range f.peers.executed {
		if n != 1 {
			t.Errorf("call %s was executed %d times", call, n)
		}
	}
}

func TestAnInterruptReachesTheSubagents(t *testing.T) {
	t.Parallel()
	f := start(t, lead, withSubagents)
	ctx := t.Context()
	s := f.session(ctx, t)
	created, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "block"})
	if err != nil {
		t.Fatal(err)
	}
	<-f.peers.blocked
	if _, err := f.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	f.waitForEnd(ctx, t, created.Turn.Name)
	log := f.log(ctx, t, s)
	for call, what := range told(log) {
		if what[len(what)-1] != "finished INTERRUPTED" || what[0] != "started" {
			t.Errorf("call %s: %v", call, what)
		}
	}
	child := f.children(ctx, t, s)[0]
	if child.ActiveTurn != "" {
		t.Error("the subagent works on")
	}
	if got := shape(f.messages(ctx, t, s)); !strings.HasSuffix(got, "use Task\nuser: INTERRUPTED") {
		t.Errorf("the conversation is %s", got)
	}
}

func TestHowASubagentEndsIsToldAsSuch(t *testing.T) {
	t.Parallel()
	f := start(t, lead, withSubagents)
	ctx := t.Context()
	for text, want := range map[string]string{
		"wrong": `There is no subagent "missing". There are: reader, nested, blocker, writer, other.`,
		"fail":  "The subagent failed (",
		"other": "seen",
	} {
		s := f.session(ctx, t)
		if end := finished(t, f.turn(ctx, t, s, text)); !strings.HasPrefix(end.FinalText, want) {
			t.Errorf("%s: %s", text, end.FinalText)
		}
	}
}

func TestAnApprovalOfASubagentShowsInTheParentAndIsAnsweredAtTheChild(t *testing.T) {
	t.Parallel()
	f := start(t, lead, withSubagents)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "ask"}, func(e *sessionv1.Event) {
		asked := e.GetSubagentEvent().GetEvent().GetApprovalRequested()
		if asked == nil {
			return
		}
		child, _, _ := strings.Cut(e.GetSubagentEvent().Event.Turn, "/turns/")
		if _, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: child, CallId: asked.CallId, Digest: asked.Digest, Approved: true}); err != nil {
			t.Error(err)
		}
	})
	if end := finished(t, events); end.FinalText != "written" {
		t.Errorf("the turn ended %v", end)
	}
}

func TestAParentsBudgetHoldsForItsSubagents(t *testing.T) {
	t.Parallel()
	f := start(t, lead, withSubagents)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "ten", Limits: &sessionv1.TurnLimits{MaxTokens: 9_000}}, nil)
	end := finished(t, events)
	turn, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: events[0].Turn})
	if err != nil {
		t.Fatal(err)
	}
	used := turn.Turn.Usage.InputTokens + turn.Turn.Usage.OutputTokens + turn.Turn.SubagentUsage.InputTokens + turn.Turn.SubagentUsage.OutputTokens
	if used > 9_000 {
		t.Errorf("the turn and its subagents used %d tokens", used)
	}
	exhausted := 0
	for _, e := range events {
		if b := e.GetSubagentFinished(); b.GetError().GetReason() == "BUDGET_EXHAUSTED" {
			exhausted++
		}
	}
	if exhausted == 0 {
		t.Errorf("no subagent met the parent's budget; the turn ended %v", fmt.Sprint(end))
	}
}
