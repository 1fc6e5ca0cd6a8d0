package turn

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// takeCommands reads the inbox and carries out its commands. A command is
// consumed by the write that holds its effect, so that a crash loses neither.
func (w *Worker) takeCommands(ctx context.Context) error {
	commands, err := w.Store.Inbox(ctx, w.Lease)
	if err != nil {
		return fmt.Errorf("read the inbox of session %s: %w", w.Lease.Session, err)
	}
	for _, c := range commands {
		if w.taken[c.ID] {
			continue
		}
		w.taken[c.ID] = true
		if err := w.take(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) take(ctx context.Context, c store.Command) error {
	switch c.Kind {
	case store.CommandTurn:
		return w.takeTurn(ctx, c)
	case store.CommandInterrupt:
		return w.takeInterrupt(ctx, c)
	case store.CommandRollback:
		return w.takeRollback(ctx, c)
	case store.CommandApproval:
		return w.takeApproval(ctx, c)
	case store.CommandToolResult:
		return w.takeToolResult(ctx, c)
	case store.CommandExpire:
		return takeExpiry(ctx, w, c)
	case store.CommandRepository:
		return w.takeRepository(ctx, c)
	case store.CommandOperation:
		return w.takeOperation(ctx, c)
	case store.CommandMove:
		return w.takeMove(ctx, c)
	case store.CommandCheckpoint:
		return w.takeCheckpoint(ctx, c)
	case store.CommandRewind:
		return w.takeRewind(ctx, c)
	case store.CommandCompact:
		w.compacts = append(w.compacts, c) // done between two steps, or when nothing runs
		return nil
	default:
		if err := w.Log.Flush(ctx); err != nil { // giving the lease back loses what is not written
			return err
		}
		return fmt.Errorf("the inbox of session %s: %w: %q", w.Lease.Session, ErrUnknownCommand, c.Kind)
	}
}

// takeTurn begins a turn, or puts it behind the active one.
func (w *Worker) takeTurn(ctx context.Context, c store.Command) error {
	t, err := w.LoadTurn(ctx, c.TurnID)
	if err != nil {
		return err
	}
	write := store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{{
		Turn: t.Proto.Name,
		Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{Content: content(t.Request), User: c.User, Resume: t.Request.Resume}},
	}}}
	if w.Active != nil {
		w.Active.Enqueue(t.ID, t.Request.OnActive)
		if c.Target == w.Active.ID {
			w.Active.Run.Steer = append(w.Active.Run.Steer, t.ID)
		}
		write.Turns = []*store.TurnRow{w.Active.Row()}
		return w.Log.Append(ctx, write)
	}
	if err := w.LoadPath(ctx); err != nil {
		return err
	}
	w.begin(&write, t)
	return w.Log.Append(ctx, write)
}

// begin makes a turn the active one: the user's message becomes the head.
func (w *Worker) begin(write *store.Write, t *state.Turn) {
	w.Active = t
	w.RecordProgress()
	t.Run.StartSeq = w.Log.Seq() + int64(len(write.Events)) + 1
	t.Since = state.Now().AsTime()
	t.Proto.State = sessionv1.TurnState_TURN_STATE_RUNNING
	t.Proto.StartTime = state.Now()
	if resolved, err := w.Resolve(w.Spec.Model); err == nil {
		t.Proto.Model = resolved.Provider + ":" + resolved.Name
	}
	if blocks := w.opening(t); len(blocks) > 0 {
		w.AddMessage(write, w.NewMessage(sessionv1.Role_ROLE_USER, 0, blocks))
	}
	write.Events = append(write.Events, w.Event(0, &sessionv1.Event{Body: &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{
		Model: t.Proto.Model, Limits: t.Proto.Limits, TraceId: t.Proto.TraceId,
	}}}))
	write.Turns = append(write.Turns, t.Row())
	write.ActiveTurn = &t.ID
}

func (w *Worker) takeInterrupt(ctx context.Context, c store.Command) error {
	r := &sessionv1.InterruptSessionRequest{}
	if len(c.Body) > 0 {
		if err := proto.Unmarshal(c.Body, r); err != nil {
			return fmt.Errorf("read an interrupt: %w", err)
		}
	}
	if w.Active != nil && r.CancelQueued {
		if err := w.cancelQueue(ctx); err != nil {
			return err
		}
	}
	// With cancel_queued everything stops that was accepted before the interrupt,
	// including a turn that was queued then and runs now.
	if w.Active == nil || w.Active.ID != c.TurnID && !r.CancelQueued {
		return w.Log.Append(ctx, store.Write{Consume: []int64{c.ID}})
	}
	return w.stopActive(ctx, c)
}

// stopActive lets the loop stop the turn; a waiting turn is stopped at once. The
// end of the turn consumes the command.
func (w *Worker) stopActive(ctx context.Context, c store.Command) error {
	t := w.Active
	stopping := t.Stopped
	t.Stopped = true
	t.Consume = append(t.Consume, c.ID)
	if stopping || !t.Waiting() {
		return nil // the loop stops the turn, or an earlier interrupt already has
	}
	if err := w.LoadPath(ctx); err != nil {
		return err
	}
	return w.stop(ctx, errInterrupted)
}

// cancelQueue ends the turns behind the active one.
func (w *Worker) cancelQueue(ctx context.Context) error {
	if len(w.Active.Run.Queue) == 0 {
		return nil
	}
	var write store.Write
	queue, _ := w.Active.TakeQueue()
	for _, id := range queue {
		t, err := w.LoadTurn(ctx, id)
		if err != nil {
			return err
		}
		t.Proto.State = sessionv1.TurnState_TURN_STATE_INTERRUPTED
		t.Proto.EndTime = timestamppb.Now()
		t.Proto.Error = state.TurnError(sessionv1.ErrorReason_ERROR_REASON_INTERRUPTED, "Somebody stopped the session before this turn began. Send the message again to have it answered.")
		write.Turns = append(write.Turns, t.Row())
		write.FinishedTurns++
		write.Events = append(write.Events, &sessionv1.Event{Turn: t.Proto.Name, Body: finishedBody(t.Proto)})
	}
	write.Turns = append(write.Turns, w.Active.Row())
	return w.Log.Append(ctx, write)
}

func (w *Worker) takeApproval(ctx context.Context, c store.Command) error {
	r := &sessionv1.ResolveApprovalRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return fmt.Errorf("read an approval: %w", err)
	}
	t := w.Active
	if t == nil || t.Run.Asked[c.CallID].Digest != r.Digest {
		return w.Log.Append(ctx, store.Write{Consume: []int64{c.ID}, Waited: []string{c.CallID}})
	}
	t.Run.Approvals[c.CallID] = state.Answer{Digest: r.Digest, Approved: r.Approved, Comment: r.Comment, User: c.User}
	delete(t.Run.Asked, c.CallID)
	write := store.Write{Consume: []int64{c.ID}, Waited: []string{c.CallID}}
	write.Events = append(write.Events, w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{
		CallId: c.CallID, Approved: r.Approved, User: c.User, Comment: r.Comment,
	}}}))
	return w.resume(ctx, write)
}

func (w *Worker) takeToolResult(ctx context.Context, c store.Command) error {
	r := &sessionv1.SubmitToolResultRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return fmt.Errorf("read a tool's result: %w", err)
	}
	t := w.Active
	write := store.Write{Consume: []int64{c.ID}, Waited: []string{c.CallID}}
	if err := w.LoadPath(ctx); err != nil {
		return err
	}
	if t == nil || !w.CallOpen(c.CallID) {
		return w.Log.Append(ctx, write)
	}
	outcome := sessionv1.ToolOutcome_TOOL_OUTCOME_OK
	if r.IsError {
		outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
	}
	result := &sessionv1.ToolResult{CallId: c.CallID, Content: r.Content, Outcome: outcome}
	if err := t.SetResult(c.CallID, result); err != nil {
		return err
	}
	write.Events = append(write.Events, w.FinishedCall(w.ToolName(c.CallID), result, 0))
	return w.resume(ctx, write)
}

// resume appends an answer; a waiting turn runs again.
func (w *Worker) resume(ctx context.Context, write store.Write) error {
	t := w.Active
	if t.Waiting() {
		t.Proto.State = sessionv1.TurnState_TURN_STATE_RUNNING
		t.Since = state.Now().AsTime()
		write.Events = append(write.Events, w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_TurnResumed{TurnResumed: &sessionv1.TurnResumed{}}}))
	}
	write.Turns = []*store.TurnRow{t.Row()}
	return w.Log.Append(ctx, write)
}

// said returns the user's words as the blocks of a message.
func said(r *sessionv1.CreateTurnRequest) []*sessionv1.Block {
	var blocks []*sessionv1.Block
	for _, c := range content(r) {
		blocks = append(blocks, &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: c}})
	}
	return blocks
}

// content returns the user's words.
func content(r *sessionv1.CreateTurnRequest) []*commonv1.Content {
	var all []*commonv1.Content
	if r.Text != "" {
		all = append(all, &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: r.Text}}})
	}
	return append(all, r.Content...)
}
