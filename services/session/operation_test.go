package session_test

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
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
	f := start(t, background)
	events := f.turn(t.Context(), t, f.session(t.Context(), t), "work")
	var began *sessionv1.OperationStarted
	var ended *sessionv1.OperationFinished
	var handed []string
	for _, e := range events {
		if s := e.GetOperationStarted(); s != nil {
			began = s
		}
		if s := e.GetOperationFinished(); s != nil {
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
