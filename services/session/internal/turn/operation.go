package turn

import (
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// operationEvents tell of the operation that a call handed back or looked at.
// Tools keeps operations; the log says what the turn has seen of them.
func (w *Worker) operationEvents(u *sessionv1.ToolUse, r *toolsv1.CallResult) []*sessionv1.Event {
	var e *sessionv1.Event
	seen := r.GetObserved()
	switch {
	case r.GetOperation() != "":
		e = &sessionv1.Event{Body: &sessionv1.Event_OperationStarted{OperationStarted: &sessionv1.OperationStarted{
			Operation: r.Operation, CallId: u.CallId, Tool: u.Tool,
		}}}
	case seen == nil:
		return nil
	case seen.State == toolsv1.OperationState_OPERATION_STATE_RUNNING:
		e = &sessionv1.Event{Body: &sessionv1.Event_OperationProgress{OperationProgress: &sessionv1.OperationProgress{
			Operation: seen.Operation, Message: seen.Progress,
		}}}
	default:
		e = &sessionv1.Event{Body: &sessionv1.Event_OperationFinished{OperationFinished: &sessionv1.OperationFinished{
			Operation: seen.Operation, State: strings.TrimPrefix(seen.State.String(), "OPERATION_STATE_"), Message: seen.Progress,
		}}}
	}
	return []*sessionv1.Event{w.event(w.stepNumber(), e)}
}
