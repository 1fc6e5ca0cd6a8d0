package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

const background = `
turns:
  - when: work
    steps:
      - tools: [{name: Background, input: {}}]
      - tools: [{name: check_operation, input: {operation: operations/x}}]
      - text: [Done]
fallback: {steps: [{text: [ok]}]}
`

func TestTheLogTellsWhatATurnSawOfAnOperation(t *testing.T) {
	t.Parallel()
	f := start(t, background)
	events := f.turn(t.Context(), t, f.session(t.Context(), t), "work")
	var began *sessionv1.OperationStarted
	var ended *sessionv1.OperationFinished
	var handed []string
	for _, e := range events {
		if s := e.GetOperationStarted(); s != nil {
			began = s
		}
		if s := e.GetOperationFinished(); s.GetCallId() != "" {
			ended = s
		}
		if s := e.GetToolCallFinished(); s != nil {
			handed = append(handed, s.Operation)
		}
	}
	if began.GetTool() != "Background" || began.GetOperation() != "operations/"+began.GetCallId() {
		t.Errorf("operation.started says %v", began)
	}
	if ended.GetState() != "SUCCEEDED" || ended.GetOperation() != "operations/x" || ended.GetMessage() != "make" {
		t.Errorf("operation.finished says %v", ended)
	}
	if len(handed) != 2 || handed[0] != began.GetOperation() || handed[1] != "" {
		t.Errorf("the calls handed back %q", handed)
	}
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
}

func TestAnInterruptTellsOfTheOperationThatACallHasHandedBack(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: work
    steps: [{tools: [{name: Block, input: {}}]}]
fallback: {steps: [{text: [ok]}]}
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "work")
	call := <-f.peers.blocked
	// The call ends well while the interrupt is on its way.
	f.peers.finish(call, toolsv1.CallOutcome_CALL_OUTCOME_OK, "It runs on.").Operation = "operations/" + call
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, turn.Name)
	var told, handed string
	for _, e := range f.log(ctx, t, s) {
		if o := e.GetOperationStarted(); o != nil {
			told = o.Operation
		}
		if c := e.GetToolCallFinished(); c != nil {
			handed = c.Operation
		}
	}
	if want := "operations/" + call; told != want || handed != want {
		t.Errorf("the log tells of the operation %q, and the call handed back %q; want %q", told, handed, want)
	}
}

// GetOperation tells of operations: one runs at the first look, and has ended at the
// second, after it has used the network.
func (p *peers) GetOperation(_ context.Context, r *toolsv1.GetOperationRequest) (*toolsv1.GetOperationResponse, error) {
	if err := p.away("GetOperation"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.executed[r.Name[len("operations/"):]] == 0 {
		return nil, apierr.Of(codes.NotFound, toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND, "there is none")
	}
	o := &toolsv1.Operation{Name: r.Name, State: toolsv1.OperationState_OPERATION_STATE_RUNNING, CreateTime: timestamppb.Now()}
	if p.looks[r.Name]++; p.looks[r.Name] > 1 {
		o.State = toolsv1.OperationState_OPERATION_STATE_SUCCEEDED
		o.Network = []*sandboxv1.NetworkUse{
			{Host: "a.example.com", Port: 443, Rule: "r", Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE, Connections: 2},
			{Host: "b.example.com", Port: 443, Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DENIED, Message: "no rule"},
		}
	}
	return &toolsv1.GetOperationResponse{Operation: o}, nil
}

// connected gives the tester a network.
func connected(c *session.Config) {
	a := c.Agents["tester"]
	a.Network = []agent.NetworkRule{{Host: "*.example.com"}}
	c.Agents["tester"] = a
}

func TestTheLogTellsOfTheNetworkOfACommandThatOutlivesItsTurn(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: work
    steps: [{tools: [{name: Background, input: {}}]}, {text: [Done]}]
fallback: {steps: [{text: [ok]}]}
`, connected)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "work")
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Fatalf("the turn ended %v", end)
	}
	f.restart(t) // no worker of the turn is left
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	var told []*sessionv1.Event
	for len(told) < 2 {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if resp.GetEvent().GetToolCallNetwork() != nil {
			told = append(told, resp.GetEvent())
		}
	}
	want := []*sessionv1.ToolCallNetwork{
		{Host: "a.example.com", Port: 443, Rule: "r", Allowed: true, Outcome: "done", Connections: 2},
		{Host: "b.example.com", Port: 443, Outcome: "denied", Message: "no rule"},
	}
	var got []*sessionv1.ToolCallNetwork
	for _, e := range told {
		if e.Turn != events[0].Turn || e.Step != 1 {
			t.Errorf("it belongs to step %d of %q", e.Step, e.Turn)
		}
		got = append(got, e.GetToolCallNetwork())
	}
	if d := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&sessionv1.ToolCallNetwork{}, "call_id")); d != "" {
		t.Error(d)
	}
	if id := got[0].CallId; f.peers.looks["operations/"+id] != 2 {
		t.Errorf("operations/%s was looked at %d times", id, f.peers.looks["operations/"+id])
	}
}

func TestTheLogTellsOfTheEndOfAnOperationThatNoCallLooksAt(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: work
    steps: [{tools: [{name: Background, input: {}}]}, {text: [Done]}]
fallback: {steps: [{text: [ok]}]}
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.turn(ctx, t, s, "work")[0].Turn
	e := f.waitFor(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetOperationFinished() != nil })
	end := e.GetOperationFinished()
	if end.State != "SUCCEEDED" || end.CallId != "" || f.peers.looks[end.Operation] != 2 || e.Turn != turn || e.Step != 1 {
		t.Errorf("it says %v", e)
	}
	if again := f.turn(ctx, t, s, "hi"); finished(t, again).State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the next turn ended %v", again)
	}
}
