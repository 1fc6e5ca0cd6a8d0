package turn

import (
	"context"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// park makes the turn wait: from here on it exists in the store only.
func (w *Worker) park(ctx context.Context, open []*sessionv1.ToolUse) error {
	t := w.Active
	var ids []string
	var write store.Write
	for _, u := range open {
		ids = append(ids, u.CallId)
		if _, asked := t.Run.Asked[u.CallId]; !asked {
			w.AwaitAnswer(&write, store.PendingCall{CallID: u.CallId, Answer: store.CommandToolResult})
		}
	}
	return w.wait(ctx, write, ids...)
}

// wait commits the write with which the turn begins to wait for these calls.
func (w *Worker) wait(ctx context.Context, write store.Write, ids ...string) error {
	t := w.Active
	t.Run.WallUsed = t.WallUsed()
	w.spend.SettleTime(t, &write)
	t.Proto.State = sessionv1.TurnState_TURN_STATE_WAITING
	write.Events = append(write.Events, w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{CallIds: ids}}}))
	write.Turns = []*store.TurnRow{t.Row()}
	write.StepCommitted = true
	return w.Log.Commit(ctx, write)
}

// takeExpiry ends the wait of a call that got no answer in time. The turn goes on
// with a result that says so; a turn that waits for its budget goes on as if a
// person had refused.
func takeExpiry(ctx context.Context, w *Worker, c store.Command) error {
	write := store.Write{Consume: []int64{c.ID}, Waited: []string{c.CallID}}
	if err := w.LoadPath(ctx); err != nil {
		return err
	}
	t := w.Active
	if t == nil {
		return w.Log.Append(ctx, write)
	}
	q, asked := t.Run.Asked[c.CallID]
	tool := w.ToolName(c.CallID)
	if !asked && (t.Client[tool] == nil || !w.CallOpen(c.CallID)) {
		return w.Log.Append(ctx, write)
	}
	why := fmt.Sprintf("No answer came within %v.", w.AnswerTTL)
	if asked {
		delete(t.Run.Asked, c.CallID)
		write.Events = append(write.Events, w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{
			CallId: c.CallID, Comment: why, Expired: true,
		}}}))
	}
	if tool == "" {
		t.Run.Approvals[c.CallID] = state.Answer{Digest: q.Digest, Comment: why, Expired: true}
		return w.resume(ctx, write)
	}
	r := &sessionv1.ToolResult{CallId: c.CallID, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_EXPIRED, Content: []*commonv1.Content{state.Text(expiredText(asked, why))}}
	if err := t.SetResult(c.CallID, r); err != nil {
		return err
	}
	write.Events = append(write.Events, w.FinishedCall(tool, r, 0))
	return w.resume(ctx, write)
}

// expiredText returns the model's text for a call that got no answer in time.
func expiredText(asked bool, why string) string {
	if asked {
		return "A person was asked to allow the call. " + why + " The call was not made: it never started and did nothing."
	}
	return "The client was asked to make the call. " + why + " It is not known whether the client has done anything."
}

// stoppedText returns the model's text for a call that had no result when its turn
// ended.
func stoppedText(t *state.Turn, u *sessionv1.ToolUse, notMade string) string {
	if _, asked := t.Run.Asked[u.CallId]; asked {
		return notMade + " It waited for a person's approval: it never started and did nothing."
	}
	if t.Client[u.Tool] != nil && t.Waiting() {
		return "The turn ended while the client was asked to make the call. It is not known whether the client has done anything."
	}
	return notMade
}
