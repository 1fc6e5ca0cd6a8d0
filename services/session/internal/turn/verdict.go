package turn

import (
	"context"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// maxOutputAsks is how often an agent that ends without its required output is
// asked for it.
const maxOutputAsks = 2

// finishTool returns the session's own tool, for agents that have it.
func (w *Worker) finishTool() ([]model.Tool, error) {
	if !w.Spec.Finishes() {
		return nil, nil
	}
	schema, err := verdict.Compile(string(w.Spec.OutputSchema))
	if err != nil {
		return nil, err
	}
	return []model.Tool{{Name: verdict.Tool, Description: verdict.ToolDescription, InputSchema: verdict.ToolSchema(schema)}}, nil
}

// answerFinish gives a result to the finish calls of an assistant message whose
// other calls all have one. The first valid call is the verdict, unless a new
// message has come that the agent has not seen.
func (w *Worker) answerFinish(ctx context.Context, write *store.Write, m *sessionv1.Message) (*verdict.Verdict, error) {
	var found *verdict.Verdict
	cut, err := wasCut(w.Active)
	if err != nil {
		return nil, err
	}
	for _, u := range state.ToolUses(m) {
		if !w.IsFinish(u) {
			continue
		}
		if _, done := w.Active.Run.Results[u.CallId]; done {
			continue
		}
		outcome, text := sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "The turn ends here."
		v, err := w.parseFinish(u)
		switch {
		case found != nil:
			outcome, text = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "The turn ends by another call of finish."
		case err != nil:
			outcome, text = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "The turn goes on: "+err.Error()+". Mend it and call finish again."
		case cut:
			outcome, text = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "The turn goes on: your answer was cut off after this call. Call finish again when all is done."
		case w.steerComes(ctx):
			text = "The turn goes on: the user has sent another message meanwhile. Call finish again when that is done too."
		default:
			found = &v
		}
		r := &sessionv1.ToolResult{CallId: u.CallId, Outcome: outcome, Content: []*commonv1.Content{state.Text(text)}}
		if err := w.Active.SetResult(u.CallId, r); err != nil {
			return nil, err
		}
		write.Events = append(write.Events, w.FinishedCall(u.Tool, r, 0))
	}
	return found, nil
}

func (w *Worker) parseFinish(u *sessionv1.ToolUse) (verdict.Verdict, error) {
	schema, err := verdict.Compile(string(w.Spec.OutputSchema))
	if err != nil {
		return verdict.Verdict{}, err
	}
	return verdict.Parse(u.ArgumentsJson, schema)
}

// finishWith ends the turn with the agent's verdict.
func (w *Worker) finishWith(ctx context.Context, write store.Write, v verdict.Verdict) error {
	t := w.Active
	t.Summary, t.Proto.OutputJson = v.Summary, v.OutputJSON
	return w.finish(ctx, write, v.State, v.Error())
}

// conclude ends the turn after its final message, which is in the path: with
// the verdict in the message's header, or COMPLETE. An agent without its
// required output is asked for it.
func (w *Worker) conclude(ctx context.Context, write store.Write) error {
	t := w.Active
	switch {
	case w.Spec.OwesOutput() && t.Run.OutputAsks < maxOutputAsks:
		t.Run.OutputAsks++
		w.AddMessage(&write, w.NewMessage(sessionv1.Role_ROLE_USER, t.Proto.Steps, []*sessionv1.Block{state.TextBlock(
			"Note by the session: you have ended without handing over the output that is asked for. Call the tool finish with it.")}))
		write.Turns = append(write.Turns, t.Row())
		return w.Log.Commit(ctx, write)
	case w.Spec.OwesOutput():
		return w.fail(ctx, write, sessionv1.ErrorReason_ERROR_REASON_OUTPUT_MISSING, fmt.Sprintf(
			"The agent ended without the structured output that it owes, also after it was asked for it %d times. Its text is kept; send another message to ask for the output.", maxOutputAsks))
	default:
		if v, _ := w.Header(w.Last()); v != nil {
			return w.finishWith(ctx, write, *v)
		}
		return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_COMPLETE, nil)
	}
}

// textOf returns the text of a message as people see it.
func (w *Worker) textOf(m *sessionv1.Message) string {
	_, text := w.Header(m)
	return text
}
