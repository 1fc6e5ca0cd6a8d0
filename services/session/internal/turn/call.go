package turn

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// makeOwnCall makes the call that is the whole turn. The turn waits while a person is asked, and
// ends with the call's result, whatever that is.
func (w *Worker) makeOwnCall(sc state.Scope) (state.Outcome, error) {
	t, m := sc.Active, sc.Calling()
	if t.Run.Began == 0 {
		if sc.Draining.Load() {
			return state.Outcome{}, w.spend.Leave(sc)
		}
		if err := w.beginOwnCall(sc, m); err != nil {
			return state.Outcome{}, err
		}
	}
	if !t.HasResult(t.Proto.Call.CallId) {
		made, out, err := w.callTools(sc, m)
		if err != nil || !made {
			return out, err
		}
	}
	return state.Ended(store.Write{}, sessionv1.TurnState_TURN_STATE_COMPLETE, nil), nil
}

// beginOwnCall records that the call is about to be made. That is synced before it starts, like
// the message of a step with calls, so that a successor knows whether it may have started.
func (w *Worker) beginOwnCall(sc state.Scope, m *sessionv1.Message) error {
	t := sc.Active
	call := t.Proto.Call
	t.Run.Began = sc.Log.Seq() + 1
	w.calls.Committed(m.Name)
	return sc.Commit(store.Write{Turns: []*store.TurnRow{t.Row()}, Events: []*sessionv1.Event{
		sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_ToolCallStarted{ToolCallStarted: &sessionv1.ToolCallStarted{
			CallId: call.CallId, Tool: call.Tool,
		}}}),
		sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{
			CallId: call.CallId, Tool: call.Tool, ArgumentsJson: call.ArgumentsJson,
		}}}),
	}})
}
