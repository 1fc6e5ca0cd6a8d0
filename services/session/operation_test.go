package session_test

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
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
