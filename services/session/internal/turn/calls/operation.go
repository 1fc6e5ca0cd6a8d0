package calls

import (
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// operationEvents returns the event of the operation that a call started or
// looked at. Tools stores operations; the log has what the turn saw of them.
func operationEvents(sc state.Scope, u *sessionv1.ToolUse, r *toolsv1.CallResult) []*sessionv1.Event {
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
			Operation: seen.Operation, State: strings.TrimPrefix(seen.State.String(), "OPERATION_STATE_"), Message: seen.Progress, CallId: u.CallId,
		}}}
	}
	return []*sessionv1.Event{sc.StepEvent(e)}
}

// watchOperation returns the job that logs the end of an operation, and what its command did with the network. It may
// end long after the turn, and no call may look at it.
func watchOperation(sc state.Scope, u *sessionv1.ToolUse, r *toolsv1.CallResult) []store.Job {
	if r.GetOperation() == "" {
		return nil
	}
	return []store.Job{jobs.OperationJob(store.Key{Tenant: sc.Lease.Tenant, Session: sc.Lease.Session}, jobs.Operation{
		Name: r.Operation, Call: u.CallId, Turn: sc.Active.Proto.Name, Step: sc.Active.Step(),
	})}
}

// EndOperation appends how an operation ended, and what it did with the network.
func EndOperation(sc state.Scope, c store.Command) error {
	o, ended, err := jobs.ReadOperation(c.Body)
	if err != nil {
		return err
	}
	events := networkEvents(o.Turn, o.Step, o.Call, ended)
	if ended.State != toolsv1.OperationState_OPERATION_STATE_UNSPECIFIED { // an older replica reports the network alone
		events = append(events, &sessionv1.Event{Turn: o.Turn, Step: o.Step, Body: &sessionv1.Event_OperationFinished{OperationFinished: &sessionv1.OperationFinished{
			Operation: o.Name, State: strings.TrimPrefix(ended.State.String(), "OPERATION_STATE_"), Message: ended.Progress,
		}}})
	}
	return sc.Append(store.Write{Consume: []int64{c.ID}, Events: events})
}
