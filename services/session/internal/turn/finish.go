package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// finish ends the active turn in the same commit as write, and begins the next
// one that waits behind it.
func (w *Worker) finish(ctx context.Context, write store.Write, state sessionv1.TurnState, why *sessionv1.TurnError) error {
	t := w.active
	t.run.WallUsed = t.wallUsed()
	t.turn.State, t.turn.Error, t.turn.EndTime = state, why, timestamppb.Now()
	t.turn.FinalText = w.finalText()
	queue := t.run.Queue
	t.run.Queue = nil
	t.clearStep()
	write.Events = append(write.Events, w.event(0, &sessionv1.Event{Body: finishedBody(t.turn)}))
	write.Turns = append(write.Turns, t.row())
	write.Consume = append(write.Consume, t.consume...)
	write.Waited = append(write.Waited, w.openCalls()...)
	write.FinishedTurns++
	none := ""
	write.ActiveTurn = &none
	w.active = nil
	w.deps.Metrics.finished(ctx, t)
	if len(queue) > 0 {
		if err := w.beginNext(&write, queue); err != nil {
			return err
		}
	}
	return w.log.Commit(ctx, write)
}

func (w *Worker) beginNext(write *store.Write, queue [][]byte) error {
	next, err := accepted("", queue[0])
	if err != nil {
		return err
	}
	next.id = lastSegment(next.turn.Name)
	next.run.Queue = queue[1:]
	w.claims = 0
	w.begin(write, next)
	write.StepCommitted = true
	return nil
}

// partial ends the turn at a limit; its work is kept.
func (w *Worker) partial(ctx context.Context, write store.Write, reason sessionv1.ErrorReason, message string) error {
	return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_PARTIAL, turnError(reason, message))
}

// fail ends the turn because the agent cannot go on.
func (w *Worker) fail(ctx context.Context, write store.Write, reason sessionv1.ErrorReason, message string) error {
	w.closeCalls(&write, "The turn failed before the call was made.")
	write.Events = append(write.Events, w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_Error{Error: &sessionv1.ErrorOccurred{
		Reason: reasonName(reason), Message: message,
	}}}))
	return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_FAILED, turnError(reason, message))
}

func (w *Worker) finishCrashLoop(ctx context.Context) error {
	return w.fail(ctx, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_CRASH_LOOP, fmt.Sprintf(
		"The turn was taken up %d times without getting any further. Look at the server's log for what stops it, then send the message again.", w.claims))
}

// stop ends the turn because it was interrupted or its time is up.
func (w *Worker) stop(ctx context.Context, why error) error {
	return w.stopWith(ctx, store.Write{}, why)
}

func (w *Worker) stopWith(ctx context.Context, write store.Write, why error) error {
	w.closeCalls(&write, "The turn was stopped before the call was made.")
	if errors.Is(why, errWallTime) {
		return w.partial(ctx, write, sessionv1.ErrorReason_ERROR_REASON_MAX_WALL_TIME, fmt.Sprintf(
			"The turn took %v, as long as it may. Send another message to let the agent go on, or allow more with limits.max_wall_time.",
			w.active.turn.Limits.GetMaxWallTime().AsDuration()))
	}
	// An interrupt that ended the turn's context is in the inbox: its command is
	// consumed by the end of the turn.
	if err := w.noteInterrupts(ctx); err != nil {
		return err
	}
	return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_INTERRUPTED, turnError(sessionv1.ErrorReason_ERROR_REASON_INTERRUPTED,
		"Somebody stopped the turn. Its work so far is kept; send another message to go on."))
}

// noteInterrupts takes up interrupts of the active turn that takeCommands has
// not seen yet. Other commands wait for their time.
func (w *Worker) noteInterrupts(ctx context.Context) error {
	commands, err := w.deps.Store.Inbox(ctx, w.lease)
	if err != nil {
		return fmt.Errorf("read the inbox of session %s: %w", w.lease.Session, err)
	}
	for _, c := range commands {
		if c.Kind == store.CommandInterrupt && c.TurnID == w.active.id && !w.taken[c.ID] {
			w.active.stopped = true
			if err := w.take(ctx, c); err != nil {
				return err
			}
			w.taken[c.ID] = true
		}
	}
	return nil
}

// closeCalls gives a result to every call of the last message that has none, so
// that the transcript is well-formed, and commits the results' message.
func (w *Worker) closeCalls(write *store.Write, text string) {
	if len(w.path) == 0 {
		return
	}
	uses := toolUses(w.path[len(w.path)-1])
	if len(uses) == 0 {
		return
	}
	for _, u := range uses {
		if _, done := w.active.run.Results[u.CallId]; done {
			continue
		}
		r := &sessionv1.ToolResult{CallId: u.CallId, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, Content: []*commonv1.Content{textContent(text)}}
		if err := w.active.setResult(u.CallId, r); err != nil {
			panic(err) // a message of our own always marshals
		}
		write.Events = append(write.Events, w.finishedCall(u.Tool, r, 0))
		write.Waited = append(write.Waited, u.CallId)
	}
	if err := w.addResults(write, w.path[len(w.path)-1]); err != nil {
		panic(err) // results that were just marshaled always unmarshal
	}
}

// openCalls are the calls that wait for an answer.
func (w *Worker) openCalls() []string {
	if len(w.path) == 0 {
		return nil
	}
	var ids []string
	for _, u := range toolUses(w.path[len(w.path)-1]) {
		ids = append(ids, u.CallId)
	}
	return ids
}

// finalText is the text of the turn's last assistant message.
func (w *Worker) finalText() string {
	for i := len(w.path) - 1; i >= 0 && w.path[i].Turn == w.active.turn.Name; i-- {
		if w.path[i].Role != sessionv1.Role_ROLE_ASSISTANT {
			continue
		}
		var b strings.Builder
		for _, block := range w.path[i].Blocks {
			b.WriteString(block.GetContent().GetText().GetText())
		}
		return b.String()
	}
	return ""
}

func finishedBody(t *sessionv1.Turn) *sessionv1.Event_TurnFinished {
	return &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{
		State: t.State, Error: t.Error, Usage: t.Usage, Steps: t.Steps, FinalText: t.FinalText,
	}}
}

func turnError(reason sessionv1.ErrorReason, message string) *sessionv1.TurnError {
	return &sessionv1.TurnError{Reason: reasonName(reason), Message: message}
}

func reasonName(r sessionv1.ErrorReason) string {
	return strings.TrimPrefix(r.String(), "ERROR_REASON_")
}
