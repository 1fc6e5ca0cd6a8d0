package calls

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// failedCall returns the result of a call that failed with an RPC error.
func failedCall(u *sessionv1.ToolUse, err error) *sessionv1.ToolResult {
	if errors.Is(err, remote.ErrCallCancelled) { // cancelled by an earlier worker; it may have had an effect
		return Interrupted(u, "The call was stopped.")
	}
	if errors.Is(err, remote.ErrRefused) {
		return state.TextResult(u.CallId, sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE, "The call was not made: "+state.Explain(err))
	}
	return Unknown(u)
}

// AddResults adds the message with the results of an assistant message's calls.
func (c *Calls) AddResults(sc state.Scope, write *store.Write, m *sessionv1.Message) error {
	t := sc.Active
	n := t.Step()
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
	if c.notes != "" && len(blocks) > 0 {
		blocks[len(blocks)-1] = withNote(blocks[len(blocks)-1], c.notes)
		c.notes = ""
	}
	finished, err := t.Finishing()
	if err != nil {
		return err
	}
	write.Events = append(write.Events, sc.Event(n, &sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: finished}}))
	sc.AddMessage(write, sc.NewMessage(sessionv1.Role_ROLE_USER, n, blocks))
	t.Proto.Steps = n
	if guardrail.OnlyTodo(m) {
		t.Run.TodoSteps++
	}
	t.ClearStep()
	return nil
}

// callEnded adds the events of a call's end to a write, and a job for an operation
// that it left running.
func callEnded(sc state.Scope, write *store.Write, u *sessionv1.ToolUse, end ended, took time.Duration) {
	finished := sc.FinishedCall(u.Tool, end.result, took)
	finished.GetToolCallFinished().Operation = end.reported.GetOperation()
	write.Events = append(write.Events, networkEvents(sc.Active.Proto.Name, sc.Active.Step(), u.CallId, end.reported)...)
	write.Events = append(write.Events, todoEvents(sc, u, end.result)...)
	write.Events = append(write.Events, skillEvents(sc, u, end.result)...)
	write.Events = append(write.Events, finished)
	write.Events = append(write.Events, operationEvents(sc, u, end.reported)...)
	write.Jobs = append(write.Jobs, watchOperation(sc, u, end.reported)...)
}

// Unknown returns the result of a call of which the end is not known.
func Unknown(u *sessionv1.ToolUse) *sessionv1.ToolResult {
	return state.TextResult(u.CallId, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN,
		"It is not known how the call ended; it may have taken effect. Check before you repeat it.")
}

// withNote adds a note for the model to a result.
func withNote(b *sessionv1.Block, note string) *sessionv1.Block {
	r := proto.CloneOf(b.GetToolResult())
	r.Content = append(r.Content, state.Text("Note: "+note))
	return &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: r}}
}

// Interrupted returns the result of a call that the end of its turn
// stopped.
func Interrupted(u *sessionv1.ToolUse, text string) *sessionv1.ToolResult {
	return state.TextResult(u.CallId, sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, text)
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
	return &sessionv1.ToolResult{CallId: callID, Content: r.GetContent(), Outcome: o, StructuredJson: r.GetStructuredJson(), McpError: r.GetMcpError()}
}
