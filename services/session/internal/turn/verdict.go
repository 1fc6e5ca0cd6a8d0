package turn

import (
	"context"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// maxOutputAsks is how often an agent that ends without its required output is
// asked for it.
const maxOutputAsks = 2

// isFinish reports whether a call is of the session's own tool, which tools
// does not know.
func (w *Worker) isFinish(u *sessionv1.ToolUse) bool {
	return u.Tool == verdict.Tool && w.spec.Finishes()
}

// finishTool returns the session's own tool, for agents that have it.
func (w *Worker) finishTool() ([]model.Tool, error) {
	if !w.spec.Finishes() {
		return nil, nil
	}
	schema, err := verdict.Compile(string(w.spec.OutputSchema))
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
	cut, err := wasCut(w.active)
	if err != nil {
		return nil, err
	}
	for _, u := range toolUses(m) {
		if !w.isFinish(u) {
			continue
		}
		if _, done := w.active.run.Results[u.CallId]; done {
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
		r := &sessionv1.ToolResult{CallId: u.CallId, Outcome: outcome, Content: []*commonv1.Content{textContent(text)}}
		if err := w.active.setResult(u.CallId, r); err != nil {
			return nil, err
		}
		write.Events = append(write.Events, w.finishedCall(u.Tool, r, 0))
	}
	return found, nil
}

func (w *Worker) parseFinish(u *sessionv1.ToolUse) (verdict.Verdict, error) {
	schema, err := verdict.Compile(string(w.spec.OutputSchema))
	if err != nil {
		return verdict.Verdict{}, err
	}
	return verdict.Parse(u.ArgumentsJson, schema)
}

// finishWith ends the turn with the agent's verdict.
func (w *Worker) finishWith(ctx context.Context, write store.Write, v verdict.Verdict) error {
	t := w.active
	t.summary, t.turn.OutputJson = v.Summary, v.OutputJSON
	return w.finish(ctx, write, v.State, v.Error())
}

// conclude ends the turn after its final message, which is in the path: with
// the verdict in the message's header, or COMPLETE. An agent without its
// required output is asked for it.
func (w *Worker) conclude(ctx context.Context, write store.Write) error {
	t := w.active
	switch {
	case w.spec.OwesOutput() && t.run.OutputAsks < maxOutputAsks:
		t.run.OutputAsks++
		w.addMessage(&write, w.newMessage(sessionv1.Role_ROLE_USER, t.turn.Steps, []*sessionv1.Block{textBlock(
			"Note by the session: you have ended without handing over the output that is asked for. Call the tool finish with it.")}))
		write.Turns = append(write.Turns, t.row())
		return w.log.Commit(ctx, write)
	case w.spec.OwesOutput():
		return w.fail(ctx, write, sessionv1.ErrorReason_ERROR_REASON_OUTPUT_MISSING, fmt.Sprintf(
			"The agent ended without the structured output that it owes, also after it was asked for it %d times. Its text is kept; send another message to ask for the output.", maxOutputAsks))
	default:
		if v, _ := w.header(w.last()); v != nil {
			return w.finishWith(ctx, write, *v)
		}
		return w.finish(ctx, write, sessionv1.TurnState_TURN_STATE_COMPLETE, nil)
	}
}

// header splits a message's text into the verdict in its header, if that is
// valid, and the text for people. The message itself keeps the header: the
// model gets back what it wrote.
func (w *Worker) header(m *sessionv1.Message) (*verdict.Verdict, string) {
	var v *verdict.Verdict
	var b strings.Builder
	first := w.spec.Heads() && m.Role == sessionv1.Role_ROLE_ASSISTANT
	for _, block := range m.Blocks {
		t := block.GetContent().GetText()
		if t == nil {
			continue
		}
		text := t.Text
		if first {
			v, text = verdict.Split(text)
			first = false
		}
		b.WriteString(text)
	}
	return v, b.String()
}

// textOf returns the text of a message as people see it.
func (w *Worker) textOf(m *sessionv1.Message) string {
	_, text := w.header(m)
	return text
}

// system returns the system prompt.
func (w *Worker) system() string {
	if !w.spec.Heads() {
		return w.spec.Prompt
	}
	return strings.TrimSpace(w.spec.Prompt + "\n\n" + verdict.HeaderPrompt)
}
