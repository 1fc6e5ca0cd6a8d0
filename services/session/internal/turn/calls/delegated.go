package calls

import (
	"encoding/json"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/question"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// delegated makes a call that tools has permitted and left to the session. It
// reports the result to tools, so that a repeated request with the same id returns
// it. The events of the call are written with the result (todoEvents): after the
// report, a worker that takes over gets the result from tools and does not call
// delegated. So are those of a skill (skillEvents).
func (c *caller) delegated(sc state.Scope, u *sessionv1.ToolUse, d *toolsv1.CallDelegated) (ended, error) {
	result := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK}
	switch d.Tool {
	case state.QuestionTool:
		q, err := question.Parse(d.ArgumentsJson)
		if err != nil {
			result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
			result.Content = []*commonv1.Content{state.Text(err.Error())}
			break
		}
		answer, err := c.answer(u)
		if err != nil || answer == nil {
			return ended{question: q}, err
		}
		if answer.Action != commonv1.QuestionAction_QUESTION_ACTION_ACCEPT {
			result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_REFUSED
		}
		result.Content = []*commonv1.Content{state.Text(question.Told(q, answer))}
	case state.PlanTool:
		var plan string
		if result, plan = c.plan(u, d.ArgumentsJson); plan != "" {
			return ended{plan: plan}, nil
		}
	case agent.TaskTool:
		var err error
		if result, err = c.calls.agents.Run(sc, u, d.ArgumentsJson, c.tokens); err != nil {
			return ended{}, workerError{err}
		}
	case state.TodoTool:
		if _, err := parseTodos(d.ArgumentsJson); err != nil {
			result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
			result.Content = []*commonv1.Content{state.Text(err.Error())}
			break
		}
		result.Content = []*commonv1.Content{state.Text("The list of things to do is updated. Continue with the next item.")}
	case agent.CreateTool, agent.EditTool:
		made, err := c.makeAgent(sc, u, d)
		if err != nil {
			return ended{}, err
		}
		result = made
	case agent.SkillTool:
		read, err := c.readSkill(sc, d.ArgumentsJson)
		if err != nil {
			return ended{}, err
		}
		result = read
	default:
		result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
		result.Content = []*commonv1.Content{state.Text(fmt.Sprintf("The session cannot do %s itself.", d.Tool))}
	}
	if err := c.calls.Client.ReportResult(sc, sc.CallRef(u.CallId), result); err != nil {
		return ended{}, err
	}
	return ended{result: toolResult(u.CallId, result)}, nil
}

// answer returns a person's answer to the question of a call; nil: none yet.
func (c *caller) answer(u *sessionv1.ToolUse) (*commonv1.QuestionAnswer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sc.Active.Answer(u.CallId)
}

// addSubagent adds the end of a subagent's work to a write, and its use to the turn.
func addSubagent(t *state.Turn, write *store.Write, finished *sessionv1.Event) {
	if finished == nil {
		return
	}
	if t.Proto.SubagentUsage == nil {
		t.Proto.SubagentUsage = &sessionv1.Usage{}
	}
	eventlog.AddUsage(t.Proto.SubagentUsage, finished.GetSubagentFinished().GetUsage())
	write.Events = append(write.Events, finished)
}

// todoEvents returns the event of a changed list of things to do.
func todoEvents(sc state.Scope, u *sessionv1.ToolUse, r *sessionv1.ToolResult) []*sessionv1.Event {
	if u.Tool != state.TodoTool || r.Outcome != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
		return nil
	}
	todos, err := parseTodos(u.ArgumentsJson)
	if err != nil {
		return nil // the call would have failed
	}
	return []*sessionv1.Event{sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_TodoUpdated{TodoUpdated: &sessionv1.TodoUpdated{Todos: todos}}})}
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
