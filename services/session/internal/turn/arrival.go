package turn

import (
	"context"
	"fmt"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// steerComes reports whether a message waits to join the active turn, which is
// about to end. It returns true when it cannot know: the loop looks again.
func (w *Worker) steerComes(ctx context.Context) bool {
	if !w.mayStep() {
		return false
	}
	if len(w.active.run.Steer) > 0 {
		return true
	}
	commands, err := w.deps.Store.Inbox(ctx, w.lease)
	return err != nil || slices.ContainsFunc(commands, func(c store.Command) bool {
		return c.Target == w.active.id && !w.taken[c.ID]
	})
}

// takeIn puts the messages that steer the active turn into the conversation in
// one write. Their turns end with the active one.
func (w *Worker) takeIn(ctx context.Context) error {
	t := w.active
	var write store.Write
	for _, id := range t.run.Steer {
		s, err := w.queued(ctx, id)
		if err != nil {
			return err
		}
		s.since = now().AsTime()
		s.turn.State, s.turn.StartTime = sessionv1.TurnState_TURN_STATE_RUNNING, now()
		s.turn.Model, s.turn.SteeredInto = t.turn.Model, t.turn.Name
		m := w.newMessage(sessionv1.Role_ROLE_USER, 0, said(s.request))
		m.Turn = s.turn.Name
		w.addMessage(&write, m)
		write.Turns = append(write.Turns, s.row())
		write.Events = append(write.Events, &sessionv1.Event{
			Turn: s.turn.Name, Body: &sessionv1.Event_TurnSteered{TurnSteered: &sessionv1.TurnSteered{Into: t.turn.Name}},
		})
	}
	t.run.Queue = slices.DeleteFunc(t.run.Queue, func(id string) bool { return slices.Contains(t.run.Steer, id) })
	t.run.Steered, t.run.Steer = append(t.run.Steered, t.run.Steer...), nil
	write.Turns = append(write.Turns, t.row())
	return w.log.Commit(ctx, write) // finishSteered reads the rows from the store
}

// finishSteered ends the turns whose messages joined a turn that has ended, in
// the same state. Their use is counted with that turn.
func (w *Worker) finishSteered(ctx context.Context, write *store.Write, t *active) error {
	for _, id := range t.run.Steered {
		s, err := w.queued(ctx, id)
		if err != nil {
			return err
		}
		s.turn.State, s.turn.Error, s.turn.EndTime = t.turn.State, t.turn.Error, t.turn.EndTime
		s.turn.FinalText, s.turn.Head, s.turn.OutputJson = t.turn.FinalText, t.turn.Head, t.turn.OutputJson
		write.Events = append(write.Events, &sessionv1.Event{Turn: s.turn.Name, Body: finishedBody(s.turn)})
		write.Turns = append(write.Turns, s.row())
		write.FinishedTurns++
	}
	return nil
}

// owns reports whether a message of this turn belongs to the active one: the
// turn is the active one, or its message joined it.
func (a *active) owns(turn string) bool {
	return turn == a.turn.Name || slices.Contains(a.run.Steered, lastSegment(turn))
}

// takeRollback stops a turn. The end of the turn then undoes it.
func (w *Worker) takeRollback(ctx context.Context, c store.Command) error {
	if w.active == nil || w.active.id != c.TurnID {
		return w.log.Append(ctx, store.Write{Consume: []int64{c.ID}})
	}
	w.active.undo = true
	return w.stopActive(ctx, c)
}

func rolledBack() *sessionv1.TurnError {
	return turnError(sessionv1.ErrorReason_ERROR_REASON_ROLLED_BACK,
		"Another message took the place of this turn and undid it: the conversation went on from before it. Fork the session from this turn to go on from it after all.")
}

// rewind moves the head to before the first message of a turn that has ended,
// and returns the messages that are not on the path any more.
func (w *Worker) rewind(write *store.Write, t *active) []*sessionv1.Message {
	cut := slices.IndexFunc(w.path, func(m *sessionv1.Message) bool { return t.owns(m.Turn) })
	if cut < 0 {
		cut = len(w.path)
	}
	undone := slices.Clone(w.path[cut:])
	w.path = w.path[:cut:cut] // a message that joins the path later must not overwrite the undone ones
	w.session.Head = ""
	if cut > 0 {
		w.session.Head = w.path[cut-1].Name
	}
	head := lastSegment(w.session.Head)
	write.Head = &head
	write.Events = append(write.Events, &sessionv1.Event{Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{
		VoidFirstSeq: t.run.StartSeq, VoidLastSeq: w.log.Seq() + int64(len(write.Events)), Head: w.session.Head, UndoneTurn: t.turn.Name,
	}}})
	return undone
}

// warnOfEffects warns of effects that stay after the calls of a turn were
// undone.
func (w *Worker) warnOfEffects(write *store.Write, t *active, undone []*sessionv1.Message, restored bool) {
	calls := 0
	for _, m := range undone {
		for _, b := range m.Blocks {
			if w.mayHaveEffect(t, undone, b.GetToolResult()) {
				calls++
			}
		}
	}
	if calls == 0 {
		return
	}
	warning := &sessionv1.Warning{
		Reason:  "FILES_KEPT",
		Message: fmt.Sprintf("The turn was undone in the conversation alone: what its calls (%d that may change something) did to files and elsewhere stays done.", calls),
	}
	if restored {
		warning.Reason = "FILES_RESTORED"
		warning.Message = fmt.Sprintf("The turn was undone, and the workspace's files are what they were before its first change. What its calls (%d that may change something) did elsewhere stays done.", calls)
	}
	e := &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: warning}}
	if w.active != nil {
		e.Turn = w.active.turn.Name
	}
	write.Events = append(write.Events, e)
}

// mayHaveEffect reports whether a result is of a call that may have changed
// something.
func (w *Worker) mayHaveEffect(t *active, undone []*sessionv1.Message, r *sessionv1.ToolResult) bool {
	switch r.GetOutcome() {
	case sessionv1.ToolOutcome_TOOL_OUTCOME_OK, sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR,
		sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
	default:
		return false
	}
	for _, m := range undone {
		for _, u := range toolUses(m) {
			if u.CallId == r.CallId {
				return w.mayChange(t, u.Tool)
			}
		}
	}
	return false
}

// opening returns the message that a turn begins with. A turn that resumes
// needs one only if the model spoke last: models do not answer their own
// message.
func (w *Worker) opening(t *active) []*sessionv1.Block {
	switch {
	case !t.request.Resume:
		return said(t.request)
	case w.last() == nil || w.last().Role == sessionv1.Role_ROLE_ASSISTANT:
		return []*sessionv1.Block{textBlock(goOn)}
	default:
		return nil
	}
}

// goOn is what the model reads when a turn resumes after an answer of its own.
const goOn = "Go on where you stopped."
