package inbox

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// answering returns the write that consumes an answer.
func answering(c store.Command) store.Write {
	return store.Write{Consume: []int64{c.ID}, Waited: []string{c.CallID}}
}

// TakeApproval takes a person's answer to a question. An answer to another question is dropped.
func TakeApproval(sc state.Scope, c store.Command) error {
	r := &sessionv1.ResolveApprovalRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return fmt.Errorf("read an approval: %w", err)
	}
	t, write := sc.Active, answering(c)
	if t == nil || t.Run.Asked[c.CallID].Digest != r.Digest {
		return sc.Append(write)
	}
	rule := r.Rule
	if suggested := t.Run.Asked[c.CallID].Suggested; rule == "" && r.Scope > commonv1.ApprovalScope_APPROVAL_SCOPE_ONCE && len(suggested) > 0 {
		rule = suggested[0]
	}
	t.Run.Approvals[c.CallID] = state.Answer{
		Digest: r.Digest, Approved: r.Approved, Comment: r.Comment, User: c.User, Scope: r.Scope, Rule: rule, Arguments: r.UpdatedArgumentsJson,
	}
	planned := r.Approved && t.AsksPlan(c.CallID)
	delete(t.Run.Asked, c.CallID)
	resolved := &sessionv1.ApprovalResolved{
		CallId: c.CallID, Approved: r.Approved, User: c.User, Comment: r.Comment, Scope: r.Scope, Rule: rule, UpdatedArgumentsJson: r.UpdatedArgumentsJson,
	}
	write.Events = append(write.Events, sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: resolved}}))
	if planned {
		resolved.Mode = cmp.Or(r.Mode, commonv1.PermissionMode_PERMISSION_MODE_DEFAULT)
		write.Events = append(write.Events, state.ChangeMode(sc.Session, resolved.Mode, c.User, c.CallID))
	}
	return resume(sc, write)
}

// TakeToolResult takes the client's result of a call. A result of a call that is not open is
// dropped.
func TakeToolResult(sc state.Scope, c store.Command) error {
	r := &sessionv1.SubmitToolResultRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return fmt.Errorf("read a tool's result: %w", err)
	}
	t, write := sc.Active, answering(c)
	if err := sc.LoadPath(sc.Outlasting()); err != nil {
		return err
	}
	if t == nil || !sc.CallOpen(c.CallID) {
		return sc.Append(write)
	}
	outcome := sessionv1.ToolOutcome_TOOL_OUTCOME_OK
	if r.IsError {
		outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
	}
	result := &sessionv1.ToolResult{CallId: c.CallID, Content: r.Content, Outcome: outcome}
	if err := t.SetResult(c.CallID, result); err != nil {
		return err
	}
	write.Events = append(write.Events, sc.FinishedCall(sc.ToolName(c.CallID), result, 0))
	return resume(sc, write)
}

// TakeExpiry ends the wait of a call that got no answer in time. The turn goes on with a result
// that says so; a turn that waits for its budget goes on as if a person had refused.
func TakeExpiry(sc state.Scope, c store.Command) error {
	write := answering(c)
	if err := sc.LoadPath(sc.Outlasting()); err != nil {
		return err
	}
	t := sc.Active
	if t == nil {
		return sc.Append(write)
	}
	q, asked := t.Run.Asked[c.CallID]
	tool := sc.ToolName(c.CallID)
	if !asked && (t.Client[tool] == nil || !sc.CallOpen(c.CallID)) {
		return sc.Append(write)
	}
	why := fmt.Sprintf("No answer came within %v.", sc.AnswerTTL)
	if t.AsksQuestion(c.CallID) {
		return expireQuestion(sc, write, c.CallID, tool, why)
	}
	if asked {
		delete(t.Run.Asked, c.CallID)
		write.Events = append(write.Events, sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{
			CallId: c.CallID, Comment: why, Expired: true,
		}}}))
	}
	if tool == "" {
		t.Run.Approvals[c.CallID] = state.Answer{Digest: q.Digest, Comment: why, Expired: true}
		return resume(sc, write)
	}
	if q.Plan {
		return expire(sc, write, c.CallID, tool, "The user was asked to approve the plan. "+why+" The mode plan still holds: nothing may be changed.")
	}
	return expire(sc, write, c.CallID, tool, expiredText(asked, why))
}

// expire gives a call the result that no answer came in time.
func expire(sc state.Scope, write store.Write, call, tool, text string) error {
	r := state.TextResult(call, sessionv1.ToolOutcome_TOOL_OUTCOME_EXPIRED, text)
	if err := sc.Active.SetResult(call, r); err != nil {
		return err
	}
	write.Events = append(write.Events, sc.FinishedCall(tool, r, 0))
	return resume(sc, write)
}

// resume appends an answer; a waiting turn runs again.
func resume(sc state.Scope, write store.Write) error {
	t := sc.Active
	if t.Waiting() {
		t.Proto.State = sessionv1.TurnState_TURN_STATE_RUNNING
		t.Since = state.Now().AsTime()
		write.Events = append(write.Events, sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_TurnResumed{TurnResumed: &sessionv1.TurnResumed{}}}))
	}
	write.Turns = []*store.TurnRow{t.Row()}
	return sc.Append(write)
}

// expiredText returns the model's text for a call that got no answer in time.
func expiredText(asked bool, why string) string {
	if asked {
		return "A person was asked to allow the call. " + why + " The call was not made: it never started and did nothing."
	}
	return "The client was asked to make the call. " + why + " It is not known whether the client has done anything."
}

// TakeEvent appends an event that a job has made, such as the result of a push.
func TakeEvent(sc state.Scope, c store.Command) error {
	e := &sessionv1.Event{}
	if err := proto.Unmarshal(c.Body, e); err != nil {
		return fmt.Errorf("read the outcome of a push: %w", err)
	}
	return sc.Append(store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{e}})
}
