package turn

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/guard"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// failedCall returns the result of a call that failed with an RPC error.
func failedCall(u *sessionv1.ToolUse, err error) *sessionv1.ToolResult {
	if apierr.Reason(err) == "CALL_CANCELLED" { // cancelled by an earlier worker; it may have had an effect
		return &sessionv1.ToolResult{CallId: u.CallId, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, Content: []*commonv1.Content{state.Text("The call was stopped.")}}
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.AlreadyExists, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated:
		return &sessionv1.ToolResult{CallId: u.CallId, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE,
			Content: []*commonv1.Content{state.Text("The call was not made: " + state.Explain(err))}}
	default:
		return &sessionv1.ToolResult{CallId: u.CallId, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN,
			Content: []*commonv1.Content{state.Text("It is not known how the call ended; it may have taken effect. Check before you repeat it.")}}
	}
}

// commitResults ends the step and gives the model the results in one message.
func (w *Worker) commitResults(ctx context.Context, m *sessionv1.Message) error {
	t := w.Active
	write := store.Write{StepCommitted: true}
	said, err := w.answerFinish(ctx, &write, m)
	if err != nil {
		return err
	}
	if err := w.addResults(&write, m); err != nil {
		return err
	}
	if said != nil {
		return w.finishWith(ctx, write, *said)
	}
	if ended, err := w.guard(ctx, write); err != nil || ended {
		return err
	}
	write.Turns = []*store.TurnRow{t.Row()}
	return w.Log.Append(ctx, write)
}

// addResults adds the message with the results of an assistant message's calls.
func (w *Worker) addResults(write *store.Write, m *sessionv1.Message) error {
	t := w.Active
	n := w.Active.Step()
	var blocks []*sessionv1.Block
	for _, u := range state.ToolUses(m) {
		r, ok, err := t.Result(u.CallId)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("call %s has no result", u.CallId)
		}
		blocks = append(blocks, &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: r}})
	}
	w.withUntold(blocks)
	finished := &sessionv1.StepFinished{}
	if err := proto.Unmarshal(t.Run.Finished, finished); err != nil {
		return fmt.Errorf("read the end of step %d: %w", n, err)
	}
	write.Events = append(write.Events, w.Event(n, &sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: finished}}))
	w.AddMessage(write, w.NewMessage(sessionv1.Role_ROLE_USER, n, blocks))
	t.Proto.Steps = n
	if guard.OnlyTodo(m) {
		t.Run.TodoSteps++
	}
	t.ClearStep()
	return nil
}

// callEnded adds the events of a call's end to a write, and a job for an operation
// that it left running.
func (w *Worker) callEnded(write *store.Write, u *sessionv1.ToolUse, end ended, took time.Duration) {
	finished := w.FinishedCall(u.Tool, end.result, took)
	finished.GetToolCallFinished().Operation = end.told.GetOperation()
	write.Events = append(write.Events, networkEvents(w.Active.Proto.Name, w.Active.Step(), u.CallId, end.told)...)
	write.Events = append(write.Events, w.todoEvents(u, end.result)...)
	write.Events = append(write.Events, finished)
	write.Events = append(write.Events, w.operationEvents(u, end.told)...)
	write.Jobs = append(write.Jobs, w.attend(u, end.told)...)
}

// interruptedCall returns the result of a call that the end of its turn
// stopped.
func interruptedCall(u *sessionv1.ToolUse, text string) *sessionv1.ToolResult {
	return &sessionv1.ToolResult{CallId: u.CallId, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, Content: []*commonv1.Content{state.Text(text)}}
}

// toolResult converts a result of tools.
func toolResult(callID string, r *toolsv1.CallResult) *sessionv1.ToolResult {
	outcome := map[toolsv1.CallOutcome]sessionv1.ToolOutcome{
		toolsv1.CallOutcome_CALL_OUTCOME_OK:        sessionv1.ToolOutcome_TOOL_OUTCOME_OK,
		toolsv1.CallOutcome_CALL_OUTCOME_ERROR:     sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR,
		toolsv1.CallOutcome_CALL_OUTCOME_DENIED:    sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED,
		toolsv1.CallOutcome_CALL_OUTCOME_REFUSED:   sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED,
		toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED: sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED,
	}
	o, ok := outcome[r.GetOutcome()]
	if !ok {
		o = sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
	}
	return &sessionv1.ToolResult{CallId: callID, Content: r.GetContent(), Outcome: o}
}
