package turn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/step"
)

// runTurn runs the active turn until it ends, waits, or the worker must stop.
func (w *Worker) runTurn(sc state.Scope) error {
	t := sc.Active
	ctx, cancel := context.WithCancelCause(sc.As(t.Run.User))
	timer := time.AfterFunc(t.Proto.Limits.GetMaxWallTime().AsDuration()-t.WallUsed(), func() { cancel(errWallTime) })
	var watchers sync.WaitGroup
	watchers.Go(func() {
		w.inbox.Watch(ctx, w.session, t, func() { cancel(errInterrupted) })
	})
	defer func() {
		timer.Stop()
		cancel(nil)
		watchers.Wait()
	}()
	sc = sc.InTurn(ctx)
	defer w.stepper.Leave(sc, sc.RuntimeName())
	run, span := w.deps.Telemetry.StartRun(sc)
	keepTime := func() { watchers.Go(func() { w.spend.Keep(sc, cancel) }) }
	err := w.startTurn(run, keepTime)
	w.deps.Telemetry.EndRun(span, t, err)
	return err
}

// startTurn reserves what the active turn needs to run, and runs it.
func (w *Worker) startTurn(sc state.Scope, keepTime func()) error {
	if err := sc.LoadPath(sc.Outlasting()); err != nil {
		return err
	}
	if sc.Claims > w.deps.MaxClaims {
		_, err := w.apply(sc, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_CRASH_LOOP, fmt.Sprintf(
			"The turn was claimed %d times without a new committed step. See the server's log for the cause, then send the message again.", sc.Claims-1)))
		return err
	}
	out, err := w.spend.Hold(sc)
	if err != nil {
		return err
	}
	if paused, err := w.apply(sc, out); err != nil || paused {
		return err
	}
	keepTime()
	return w.loop(sc)
}

// loop takes the turn forward until it ends or waits.
func (w *Worker) loop(sc state.Scope) error {
	_, out, err := w.workspace.Place.Ensure(sc)
	if err != nil {
		return err
	}
	if paused, err := w.apply(sc, out); err != nil || paused {
		return err
	}
	w.workspace.Prepare(sc)
	defer w.workspace.Release()
	for {
		out, err := w.advance(sc)
		if err != nil {
			return err
		}
		if paused, err := w.apply(sc, out); err != nil || paused {
			return err
		}
	}
}

// advance makes one move: a step, a step's calls, the call that is the turn, or the end.
func (w *Worker) advance(sc state.Scope) (state.Outcome, error) {
	if err := w.takeCommands(sc.Outlasting()); err != nil {
		return state.Outcome{}, err
	}
	if err := sc.WorkerErr(); err != nil {
		return state.Outcome{}, err
	}
	switch {
	case sc.Active.Stopped:
		return state.Interrupted(store.Write{}, errInterrupted), nil
	case sc.Ended():
		return state.Interrupted(store.Write{}, context.Cause(sc)), nil
	}
	moved, out, err := w.workspace.Place.Ensure(sc)
	if err != nil || !out.GoesOn() {
		return out, err
	}
	if moved {
		w.workspace.Prepare(sc)
		return state.Outcome{}, nil
	}
	if sc.Active.IsCall() {
		return w.makeOwnCall(sc)
	}
	last := sc.Last()
	if len(state.ToolUses(last)) > 0 {
		return w.makeCalls(sc, last)
	}
	if len(sc.Active.Run.Steer) > 0 && sc.Active.MayStep() {
		return state.Outcome{}, w.turns.JoinSteering(sc)
	}
	if last.Role != sessionv1.Role_ROLE_USER {
		// The final message is committed but the end is not: an earlier worker
		// stopped there, or a message that was to join the turn no longer does.
		return step.Conclude(sc, store.Write{})
	}
	return w.beforeStep(sc)
}

// beforeStep does what is requested between two steps, or makes the next step.
func (w *Worker) beforeStep(sc state.Scope) (state.Outcome, error) {
	switch {
	case sc.Draining.Load():
		return state.Outcome{}, w.spend.Leave(sc)
	case w.workspace.Checkpoints.Requested():
		return state.Outcome{}, w.workspace.Checkpoints.MakeRequested(sc)
	case w.compactor.Requested():
		return w.compactor.RunRequestedInTurn(sc)
	case sc.RuntimeName() == agent.ClaudeCodeCLI: // it runs in the workspace
		return w.runtimeStep(sc)
	default:
		if w.tools.InSandbox(sc) {
			w.workspace.AwaitForServers(sc, serversPatience)
		}
		return w.stepper.Run(sc)
	}
}

// runtimeStep makes a step with a runtime that runs in the workspace.
func (w *Worker) runtimeStep(sc state.Scope) (state.Outcome, error) {
	here, stop := w.workspace.UntilLost(sc)
	defer stop()
	notes, out, err := w.workspace.Await(here)
	if err != nil || !out.GoesOn() {
		return out, err
	}
	w.calls.AddNotes(notes)
	return w.stepper.Run(sc)
}

// serversPatience is how long a step waits for the workspace whose MCP servers bring it tools.
const serversPatience = 10 * time.Second

// makeCalls makes the calls of an assistant message that have no result yet. It commits the
// results when all calls have one; otherwise the turn waits.
func (w *Worker) makeCalls(sc state.Scope, m *sessionv1.Message) (state.Outcome, error) {
	made, out, err := w.callTools(sc, m)
	if err != nil || !made {
		return out, err
	}
	return w.stepper.CommitResults(sc, m)
}

// callTools makes the calls of a message that have no result yet, and reports whether all have
// one now.
func (w *Worker) callTools(sc state.Scope, m *sessionv1.Message) (made bool, _ state.Outcome, _ error) {
	if sc.Active.Run.Interrupt != "" { // an earlier worker stopped there
		return false, state.Interrupted(store.Write{}, &permissionError{sc.Active.Run.Interrupt}), nil
	}
	here, stop := w.workspace.UntilLost(sc)
	defer stop()
	notes, out, err := w.workspace.Await(here)
	if err != nil || !out.GoesOn() {
		return false, out, err
	}
	w.calls.AddNotes(notes)
	if notes, err = w.calls.Setup(here, m); err != nil {
		return false, state.Outcome{}, err
	}
	w.calls.AddNotes(notes)
	if !w.tools.Listed() { // a successor has not read the list of tools yet
		if _, err := w.tools.List(here); err != nil && !here.Ended() {
			sc.Logger.WarnContext(here, "cannot list the tools; calls run one after the other", "session", sc.Lease.Session, "error", err)
		}
	}
	out, err = w.calls.Make(here, m, func(uses []*sessionv1.ToolUse) error {
		return w.workspace.Checkpoints.BeforeCalls(here, m, uses, w.calls.Inherited(m))
	})
	if errors.Is(err, state.ErrHandOver) {
		return false, out, w.spend.Leave(sc)
	}
	if err != nil || !out.GoesOn() {
		return false, out, err
	}
	if sc.Active.Run.Interrupt != "" {
		return false, state.Interrupted(store.Write{}, &permissionError{sc.Active.Run.Interrupt}), nil
	}
	if err := w.takeCommands(sc.Outlasting()); err != nil {
		return false, state.Outcome{}, err
	}
	if sc.Active.Stopped {
		return false, state.Stopped(), nil // a stopped turn must not wait for an answer
	}
	if out := calls.Park(sc, m); !out.GoesOn() {
		return false, out, nil
	}
	// Without a result is what was approved meanwhile: the loop calls this again.
	return calls.AllMade(sc, m), state.Outcome{}, nil
}

// apply acts on an outcome, and reports whether the turn has ended or waits.
func (w *Worker) apply(sc state.Scope, o state.Outcome) (paused bool, err error) {
	switch {
	case o.Wait != nil:
		return true, w.turns.Wait(sc.Outlasting(), *o.Wait)
	case o.End != nil:
		return true, w.endTurn(sc.Outlasting(), *o.End)
	default:
		return false, nil
	}
}

// endTurn ends the turn.
func (w *Worker) endTurn(sc state.Scope, e state.End) error {
	switch {
	case e.Cause != nil:
		// The interrupt that ended the turn's context is in the inbox, perhaps behind
		// turns that it cancels, perhaps before the one that runs next: all of it is
		// taken up, in order, before the turn ends.
		if err := w.takeCommands(sc); err != nil {
			return err
		}
		if err := w.closeCalls(sc, &e.Write, "The turn was stopped before the call was made."); err != nil {
			return err
		}
		e = stopped(sc.Active, e)
	case e.Failure:
		if err := w.closeCalls(sc, &e.Write, "The turn failed before the call was made."); err != nil {
			return err
		}
		e.Write.Events = append(e.Write.Events, sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_Error{Error: &sessionv1.ErrorOccurred{
			Reason: e.Error.Reason, Message: e.Error.Message,
		}}}))
	}
	return w.turns.Finish(sc, e.Write, e.State, e.Error)
}

// stopped returns the end of a turn that stops because of e.Cause.
func stopped(t *state.Turn, e state.End) state.End {
	var up *spend.TimeError
	var denied *permissionError
	switch {
	case errors.Is(e.Cause, errWallTime):
		return *state.Partial(e.Write, sessionv1.ErrorReason_ERROR_REASON_MAX_WALL_TIME, fmt.Sprintf(
			"The turn reached its time limit of %v. Send another message to let the agent continue, or allow more with limits.max_wall_time.",
			t.Proto.Limits.GetMaxWallTime().AsDuration())).End
	case errors.As(e.Cause, &denied):
		return *state.Ended(e.Write, sessionv1.TurnState_TURN_STATE_INTERRUPTED, state.TurnError(sessionv1.ErrorReason_ERROR_REASON_PERMISSION_INTERRUPT, denied.why)).End
	case errors.As(e.Cause, &up):
		return *spend.Exhausted(e.Write, up.Denied).End
	default:
		return *state.Ended(e.Write, sessionv1.TurnState_TURN_STATE_INTERRUPTED, state.TurnError(sessionv1.ErrorReason_ERROR_REASON_INTERRUPTED,
			"The turn was stopped on request. Its work so far is kept; send another message to continue.")).End
	}
}

// closeCalls gives a result to every call of the active turn that has none. It first cancels
// calls that may have begun, by this worker or an earlier one; text is the result of the other
// calls. The returned errors end the worker.
func (w *Worker) closeCalls(sc state.Scope, write *store.Write, text string) error {
	w.compactor.StopHook(sc)
	last := sc.Calling()
	if len(state.ToolUses(last)) == 0 {
		return nil
	}
	if sc.Active.IsCall() && sc.Active.Run.Began == 0 {
		w.calls.Committed(last.Name) // it has not begun
	}
	if w.calls.Inherited(last) {
		// The write that names the turn's snapshot may have died with the worker that began the
		// calls. The snapshot still exists, and a repeated request returns it.
		if err := w.workspace.Checkpoints.BeforeCalls(sc, last, w.calls.MayHaveBegun(sc, last), true); err != nil {
			return err
		}
	}
	return w.calls.End(sc, write, func(u *sessionv1.ToolUse) *sessionv1.ToolResult {
		return calls.Interrupted(u, calls.NotMade(sc.Active, u, text))
	})
}
