package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// finish ends the active turn in the same commit as write, and begins the next
// queued turn.
func (w *Worker) finish(ctx context.Context, write store.Write, state sessionv1.TurnState, why *sessionv1.TurnError) error {
	t := w.Active
	restored := t.Undo && w.restoreFiles(ctx, t) // before the numbers of events are used: it may append a warning
	if t.Undo {
		state, why = sessionv1.TurnState_TURN_STATE_INTERRUPTED, rolledBack()
	}
	w.spend.End(t, &write)
	t.Run.WallUsed = t.WallUsed()
	t.Proto.State, t.Proto.Error, t.Proto.EndTime = state, why, timestamppb.Now()
	t.Proto.FinalText, t.Proto.Head = w.finalText(), w.Proto.Head
	queue, urgent := t.TakeQueue()
	t.ClearStep()
	write.Events = append(write.Events, w.Event(0, &sessionv1.Event{Body: finishedBody(t.Proto)}))
	if !t.Undo {
		w.exportAfter(&write, t)
	}
	write.Turns = append(write.Turns, t.Row())
	write.Consume = append(write.Consume, t.Consume...)
	write.Waited = append(write.Waited, w.openCalls()...)
	write.FinishedTurns++
	write.Jobs = append(write.Jobs, w.pushes(t)...)
	if err := w.finishSteered(ctx, &write, t); err != nil {
		return err
	}
	var undone []*sessionv1.Message
	if t.Undo {
		changed := w.changed(t)
		undone = w.rewind(&write, t)
		if changed {
			w.exportRewound(&write, t.ID+".undone")
		}
		if err := w.loadCheckpoints(ctx); err != nil {
			return err
		}
		w.dropCheckpoints(&write, func(c *sessionv1.Checkpoint) bool { return c.Seq >= t.Run.StartSeq })
	}
	none := ""
	write.ActiveTurn = &none
	w.Active = nil
	w.deps.Telemetry.Finished(ctx, t)
	if len(queue) > 0 {
		if err := w.beginNext(ctx, &write, queue, urgent); err != nil {
			return err
		}
	}
	w.warnOfEffects(&write, t, undone, restored)
	return w.Log.Commit(ctx, write)
}

func (w *Worker) beginNext(ctx context.Context, write *store.Write, queue []string, urgent int) error {
	next, err := w.LoadTurn(ctx, queue[0])
	if err != nil {
		return err
	}
	next.Run.Queue, next.Run.Urgent = queue[1:], max(urgent-1, 0)
	w.begin(write, next)
	write.StepCommitted = true
	return nil
}

// partial ends the turn at a limit and keeps its work.
func (w *Worker) partial(ctx context.Context, write store.Write, reason sessionv1.ErrorReason, message string) error {
	return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_PARTIAL, state.TurnError(reason, message))
}

// fail ends the turn because the agent cannot go on.
func (w *Worker) fail(ctx context.Context, write store.Write, reason sessionv1.ErrorReason, message string) error {
	return w.failWith(ctx, write, state.TurnError(reason, message))
}

func (w *Worker) failWith(ctx context.Context, write store.Write, why *sessionv1.TurnError) error {
	if err := w.closeCalls(ctx, &write, "The turn failed before the call was made."); err != nil {
		return err
	}
	write.Events = append(write.Events, w.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_Error{Error: &sessionv1.ErrorOccurred{
		Reason: why.Reason, Message: why.Message,
	}}}))
	return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_FAILED, why)
}

func (w *Worker) finishCrashLoop(ctx context.Context) error {
	return w.fail(ctx, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_CRASH_LOOP, fmt.Sprintf(
		"The turn was tried %d times, each time by a worker that took it up, without a new committed step. Look at the server's log for what stops it, then send the message again.", w.Claims-1))
}

// stop ends the turn because it was interrupted or its time is up.
func (w *Worker) stop(ctx context.Context, why error) error {
	return w.stopWith(ctx, store.Write{}, why)
}

func (w *Worker) stopWith(ctx context.Context, write store.Write, why error) error {
	// The interrupt that ended the turn's context is in the inbox, perhaps behind
	// turns that it cancels, perhaps before the one that runs next: all of it is
	// taken up, in order, before the turn ends.
	if err := w.takeCommands(ctx); err != nil {
		return err
	}
	if err := w.closeCalls(ctx, &write, "The turn was stopped before the call was made."); err != nil {
		return err
	}
	if errors.Is(why, errWallTime) {
		return w.partial(ctx, write, sessionv1.ErrorReason_ERROR_REASON_MAX_WALL_TIME, fmt.Sprintf(
			"The turn took %v, as long as it may. Send another message to let the agent go on, or allow more with limits.max_wall_time.",
			w.Active.Proto.Limits.GetMaxWallTime().AsDuration()))
	}
	var up *spend.TimeError
	if errors.As(why, &up) {
		return w.apply(ctx, spend.Exhausted(write, up.Denied))
	}
	return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_INTERRUPTED, state.TurnError(sessionv1.ErrorReason_ERROR_REASON_INTERRUPTED,
		"Somebody stopped the turn. Its work so far is kept; send another message to go on."))
}

// closeCalls gives a result to every call of the last message that has none, so
// that the transcript is well-formed, and commits the message with the results.
// It first cancels calls that may have begun, by this worker or an earlier one;
// text is the result of the other calls. The returned errors end the worker.
func (w *Worker) closeCalls(ctx context.Context, write *store.Write, text string) error {
	w.stopHook(ctx)
	last := w.Last()
	if last == nil || len(state.ToolUses(last)) == 0 {
		return nil
	}
	if err := w.knowFiles(ctx, last); err != nil {
		return err
	}
	return w.endCalls(ctx, write, last, func(u *sessionv1.ToolUse) *sessionv1.ToolResult {
		return interruptedCall(u, stoppedText(w.Active, u, text))
	})
}

// endCalls cancels the calls of a message that may have begun, gives the others
// the result of notMade, and adds the message with all results.
func (w *Worker) endCalls(ctx context.Context, write *store.Write, m *sessionv1.Message, notMade func(*sessionv1.ToolUse) *sessionv1.ToolResult) error {
	stopped := w.cancelAll(ctx, w.mayHaveBegun(m))
	for _, u := range state.ToolUses(m) {
		if _, done := w.Active.Run.Results[u.CallId]; done {
			continue
		}
		end, began := stopped[u.CallId]
		if !began {
			end = ended{result: notMade(u)}
		}
		if err := w.Active.SetResult(u.CallId, end.result); err != nil {
			return err
		}
		w.callEnded(write, u, end, 0)
		write.Waited = append(write.Waited, u.CallId)
	}
	return w.addResults(write, m)
}

// mayHaveBegun returns the calls of a message that have no result and may have
// begun. Any call of a message that another worker committed may run; of this
// worker's own messages, only the calls that it requested.
func (w *Worker) mayHaveBegun(m *sessionv1.Message) []*sessionv1.ToolUse {
	var uses []*sessionv1.ToolUse
	for _, u := range state.ToolUses(m) {
		_, done := w.Active.Run.Results[u.CallId]
		_, asked := w.Active.Run.Asked[u.CallId] // waits for an approval: it has not begun
		if !done && !asked && w.Active.Client[u.Tool] == nil && !w.IsFinish(u) && (w.answered != m.Name || w.begun[u.CallId]) {
			uses = append(uses, u)
		}
	}
	return uses
}

// cancelAll stops calls and returns how they ended, by id.
func (w *Worker) cancelAll(ctx context.Context, uses []*sessionv1.ToolUse) map[string]ended {
	var mu sync.Mutex
	stopped := map[string]ended{}
	c := &caller{w: w, parent: ctx}
	var calls errgroup.Group
	calls.SetLimit(maxParallelCalls)
	for _, u := range uses {
		calls.Go(func() error { //nolint:contextcheck // the caller has the worker's
			r := c.cancel(u)
			mu.Lock()
			defer mu.Unlock()
			stopped[u.CallId] = r
			return nil
		})
	}
	_ = calls.Wait() // no call returns an error: how a call ended is its result
	return stopped
}

// openCalls returns the calls that wait for an answer.
func (w *Worker) openCalls() []string {
	last := w.Last()
	if last == nil {
		return nil
	}
	var ids []string
	for _, u := range state.ToolUses(last) {
		ids = append(ids, u.CallId)
	}
	return ids
}

// finalText returns the text of the turn's last assistant message.
func (w *Worker) finalText() string {
	for i := len(w.Path) - 1; i >= 0 && w.Active.Owns(w.Path[i].Turn); i-- {
		if w.Path[i].Role != sessionv1.Role_ROLE_ASSISTANT {
			continue
		}
		return cmp.Or(w.textOf(w.Path[i]), w.Active.Summary)
	}
	return w.Active.Summary
}

func finishedBody(t *sessionv1.Turn) *sessionv1.Event_TurnFinished {
	return &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{
		State: t.State, Error: t.Error, Usage: t.Usage, Steps: t.Steps, FinalText: t.FinalText, OutputJson: t.OutputJson,
	}}
}
