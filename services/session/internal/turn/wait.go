package turn

import (
	"context"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/jobs/expiry"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// park makes the turn wait: from here on it exists in the store only.
func (w *Worker) park(ctx context.Context, open []*sessionv1.ToolUse) error {
	t := w.active
	var ids []string
	var write store.Write
	for _, u := range open {
		ids = append(ids, u.CallId)
		if _, asked := t.run.Asked[u.CallId]; !asked {
			awaitAnswer(w, &write, store.PendingCall{CallID: u.CallId, Answer: store.CommandToolResult})
		}
	}
	return w.wait(ctx, write, ids...)
}

// wait commits the write with which the turn begins to wait for these calls.
func (w *Worker) wait(ctx context.Context, write store.Write, ids ...string) error {
	t := w.active
	t.run.WallUsed = t.wallUsed()
	w.settleTime(&write)
	t.turn.State = sessionv1.TurnState_TURN_STATE_WAITING
	write.Events = append(write.Events, w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{CallIds: ids}}}))
	write.Turns = []*store.TurnRow{t.row()}
	write.StepCommitted = true
	return w.log.Commit(ctx, write)
}

// awaitAnswer stores that a call of the active turn waits for an answer, and until
// when.
func awaitAnswer(w *Worker, write *store.Write, p store.PendingCall) {
	p.TurnID = w.active.id
	write.Wait = append(write.Wait, p)
	if w.deps.AnswerTTL > 0 {
		write.Jobs = append(write.Jobs, expiry.Job(w.lease.Key, p.CallID, w.deps.AnswerTTL))
	}
}

// takeExpiry ends the wait of a call that got no answer in time. The turn goes on
// with a result that says so; a turn that waits for its budget goes on as if a
// person had refused.
func takeExpiry(ctx context.Context, w *Worker, c store.Command) error {
	write := store.Write{Consume: []int64{c.ID}, Waited: []string{c.CallID}}
	if err := w.loadPath(ctx); err != nil {
		return err
	}
	t := w.active
	if t == nil {
		return w.log.Append(ctx, write)
	}
	q, asked := t.run.Asked[c.CallID]
	tool := w.toolName(c.CallID)
	if !asked && (t.client[tool] == nil || !w.callOpen(c.CallID)) {
		return w.log.Append(ctx, write)
	}
	why := fmt.Sprintf("No answer came within %v.", w.deps.AnswerTTL)
	if asked {
		delete(t.run.Asked, c.CallID)
		write.Events = append(write.Events, w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{
			CallId: c.CallID, Comment: why, Expired: true,
		}}}))
	}
	if tool == "" {
		t.run.Approvals[c.CallID] = answer{Digest: q.Digest, Comment: why, Expired: true}
		return w.resume(ctx, write)
	}
	r := &sessionv1.ToolResult{CallId: c.CallID, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_EXPIRED, Content: []*commonv1.Content{textContent(expiredText(asked, why))}}
	if err := t.setResult(c.CallID, r); err != nil {
		return err
	}
	write.Events = append(write.Events, w.finishedCall(tool, r, 0))
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
func stoppedText(t *active, u *sessionv1.ToolUse, notMade string) string {
	if _, asked := t.run.Asked[u.CallId]; asked {
		return notMade + " It waited for a person's approval: it never started and did nothing."
	}
	if t.client[u.Tool] != nil && t.waiting() {
		return "The turn ended while the client was asked to make the call. It is not known whether the client has done anything."
	}
	return notMade
}
