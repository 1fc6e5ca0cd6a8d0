package turn

import (
	"context"
	"encoding/json"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// delegated does what tools has permitted and left to the session, and reports
// the result, so that asking again by the same id brings it.
func (c *caller) delegated(ctx context.Context, u *sessionv1.ToolUse, d *toolsv1.CallDelegated) (*sessionv1.ToolResult, error) {
	result := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK}
	switch d.Tool {
	case "TodoWrite":
		todos, err := parseTodos(d.ArgumentsJson)
		if err != nil {
			result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
			result.Content = []*commonv1.Content{textContent(err.Error())}
			break
		}
		e := c.w.event(c.w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_TodoUpdated{TodoUpdated: &sessionv1.TodoUpdated{Todos: todos}}})
		if err := c.w.log.Append(ctx, store.Write{Events: []*sessionv1.Event{e}}); err != nil {
			return nil, err
		}
		result.Content = []*commonv1.Content{textContent("The list of things to do is updated. Go on with the next one.")}
	default:
		result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
		result.Content = []*commonv1.Content{textContent(fmt.Sprintf("The session cannot do %s itself.", d.Tool))}
	}
	_, err := c.w.deps.Calls.ReportResult(ctx, &toolsv1.ReportResultRequest{Call: c.w.callRef(u.CallId), Result: result})
	if err != nil {
		return nil, err
	}
	return toolResult(u.CallId, result), nil
}

func parseTodos(arguments string) ([]*sessionv1.Todo, error) {
	var list struct {
		Todos []struct {
			Content    string `json:"content"`
			Status     string `json:"status"`
			ActiveForm string `json:"activeForm"`
		} `json:"todos"`
	}
	if err := json.Unmarshal([]byte(arguments), &list); err != nil {
		return nil, fmt.Errorf("the list of things to do cannot be read: %w", err)
	}
	var todos []*sessionv1.Todo
	for _, t := range list.Todos {
		todos = append(todos, &sessionv1.Todo{Content: t.Content, Status: t.Status, ActiveForm: t.ActiveForm})
	}
	return todos, nil
}
