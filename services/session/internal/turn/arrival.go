package turn

import (
	"context"
	"fmt"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// steerComes reports whether a message waits to join the active turn, which is
// about to end. It returns true when it cannot know: the loop looks again.
func (w *Worker) steerComes(ctx context.Context) bool {
	if !w.Active.MayStep() {
		return false
	}
	if len(w.Active.Run.Steer) > 0 {
		return true
	}
	commands, err := w.Store.Inbox(ctx, w.Lease)
	return err != nil || slices.ContainsFunc(commands, func(c store.Command) bool {
		return c.Target == w.Active.ID && !w.taken[c.ID]
	})
}

// takeIn puts the messages that steer the active turn into the conversation in
// one write. Their turns end with the active one.
func (w *Worker) takeIn(ctx context.Context) error {
	t := w.Active
	var write store.Write
	for _, id := range t.Run.Steer {
		s, err := w.LoadTurn(ctx, id)
		if err != nil {
			return err
		}
		s.Since = state.Now().AsTime()
		s.Proto.State, s.Proto.StartTime = sessionv1.TurnState_TURN_STATE_RUNNING, state.Now()
		s.Proto.Model, s.Proto.SteeredInto = t.Proto.Model, t.Proto.Name
		m := w.NewMessage(sessionv1.Role_ROLE_USER, 0, said(s.Request))
		m.Turn = s.Proto.Name
		w.AddMessage(&write, m)
		write.Turns = append(write.Turns, s.Row())
		write.Events = append(write.Events, &sessionv1.Event{
			Turn: s.Proto.Name, Body: &sessionv1.Event_TurnSteered{TurnSteered: &sessionv1.TurnSteered{Into: t.Proto.Name}},
		})
	}
	t.Run.Queue = slices.DeleteFunc(t.Run.Queue, func(id string) bool { return slices.Contains(t.Run.Steer, id) })
	t.Run.Steered, t.Run.Steer = append(t.Run.Steered, t.Run.Steer...), nil
	write.Turns = append(write.Turns, t.Row())
	return w.Log.Commit(ctx, write) // finishSteered reads the rows from the store
}

// finishSteered ends the turns whose messages joined a turn that has ended, in
// the same state. Their use is counted with that turn.
func (w *Worker) finishSteered(ctx context.Context, write *store.Write, t *state.Turn) error {
	for _, id := range t.Run.Steered {
		s, err := w.LoadTurn(ctx, id)
		if err != nil {
			return err
		}
		s.Proto.State, s.Proto.Error, s.Proto.EndTime = t.Proto.State, t.Proto.Error, t.Proto.EndTime
		s.Proto.FinalText, s.Proto.Head, s.Proto.OutputJson = t.Proto.FinalText, t.Proto.Head, t.Proto.OutputJson
		write.Events = append(write.Events, &sessionv1.Event{Turn: s.Proto.Name, Body: finishedBody(s.Proto)})
		write.Turns = append(write.Turns, s.Row())
		write.FinishedTurns++
	}
	return nil
}

// takeRollback stops a turn. The end of the turn then undoes it.
func (w *Worker) takeRollback(ctx context.Context, c store.Command) error {
	if w.Active == nil || w.Active.ID != c.TurnID {
		return w.Log.Append(ctx, store.Write{Consume: []int64{c.ID}})
	}
	w.Active.Undo = true
	return w.stopActive(ctx, c)
}

func rolledBack() *sessionv1.TurnError {
	return state.TurnError(sessionv1.ErrorReason_ERROR_REASON_ROLLED_BACK,
		"Another message took the place of this turn and undid it: the conversation went on from before it. Fork the session from this turn to go on from it after all.")
}

// rewind moves the head to before the first message of a turn that has ended,
// and returns the messages that are not on the path any more.
func (w *Worker) rewind(write *store.Write, t *state.Turn) []*sessionv1.Message {
	cut := slices.IndexFunc(w.Path, func(m *sessionv1.Message) bool { return t.Owns(m.Turn) })
	if cut < 0 {
		cut = len(w.Path)
	}
	undone := slices.Clone(w.Path[cut:])
	w.Path = w.Path[:cut:cut] // a message that joins the path later must not overwrite the undone ones
	w.Proto.Head = ""
	if cut > 0 {
		w.Proto.Head = w.Path[cut-1].Name
	}
	head := state.LastSegment(w.Proto.Head)
	write.Head = &head
	write.Events = append(write.Events, &sessionv1.Event{Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{
		VoidFirstSeq: t.Run.StartSeq, VoidLastSeq: w.Log.Seq() + int64(len(write.Events)), Head: w.Proto.Head, UndoneTurn: t.Proto.Name,
	}}})
	return undone
}

// warnOfEffects warns of effects that stay after the calls of a turn were
// undone.
func (w *Worker) warnOfEffects(write *store.Write, t *state.Turn, undone []*sessionv1.Message, restored bool) {
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
	if w.Active != nil {
		e.Turn = w.Active.Proto.Name
	}
	write.Events = append(write.Events, e)
}

// mayHaveEffect reports whether a result is of a call that may have changed
// something.
func (w *Worker) mayHaveEffect(t *state.Turn, undone []*sessionv1.Message, r *sessionv1.ToolResult) bool {
	switch r.GetOutcome() {
	case sessionv1.ToolOutcome_TOOL_OUTCOME_OK, sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR,
		sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
	default:
		return false
	}
	for _, m := range undone {
		for _, u := range state.ToolUses(m) {
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
func (w *Worker) opening(t *state.Turn) []*sessionv1.Block {
	switch {
	case !t.Request.Resume:
		return said(t.Request)
	case w.Last() == nil || w.Last().Role == sessionv1.Role_ROLE_ASSISTANT:
		return []*sessionv1.Block{state.TextBlock(goOn)}
	default:
		return nil
	}
}

// goOn is what the model reads when a turn resumes after an answer of its own.
const goOn = "Go on where you stopped."
