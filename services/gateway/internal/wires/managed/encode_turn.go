package managed

import (
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// turn takes the events of turns. It reports whether the event is one of them.
func (e *Encoder) turn(ev *sessionv1.Event) bool {
	id := wire.LastPart(ev.GetTurn())
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_TurnQueued:
		e.queued[id] = true
		if content := blocks(b.TurnQueued.GetContent()); len(content) > 0 {
			e.asked[id] = content
			e.said(id, false)
		}
	case *sessionv1.Event_TurnStarted:
		delete(e.queued, id)
		if e.active == "" {
			e.tell("session.status_running", seqID(ev.GetFirstSeq())+"_s")
		}
		e.active = id
		e.said(id, true)
	case *sessionv1.Event_TurnSteered:
		delete(e.queued, id)
		e.said(id, true)
	case *sessionv1.Event_TurnWaiting:
		e.waiting(b.TurnWaiting.GetCallIds())
	case *sessionv1.Event_TurnResumed:
		e.tell("session.status_running", seqID(ev.GetFirstSeq())+"_s")
	case *sessionv1.Event_TurnFinished:
		e.finished(id, b.TurnFinished)
	default:
		return false
	}
	return true
}

// said tells of a user's message: first when it is accepted, and again when it is taken up.
func (e *Encoder) said(turn string, taken bool) {
	content, ok := e.asked[turn]
	if !ok {
		return
	}
	e.tell("user.message", messageID(turn), "content", content)
	if !taken {
		e.out[len(e.out)-1].Body["processed_at"] = nil
		return
	}
	delete(e.asked, turn)
}

// waiting tells that the session needs answers.
func (e *Encoder) waiting(calls []string) {
	ids, about := []string{}, e.asks(calls)
	for _, id := range calls {
		c := e.calls[id]
		if about[id] {
			continue
		}
		if c == nil {
			continue // an approval of a budget, which the wire cannot ask for
		}
		c.custom = c.custom || !c.told // a call of ours has been decided on before
		ids = append(ids, callID(id))
	}
	e.commit()
	for _, q := range e.questions {
		if about[q.of.GetCallId()] {
			e.ask(q)
			ids = append(ids, callID(q.id))
		}
	}
	e.idle(map[string]any{"type": "requires_action", "event_ids": ids}, nil)
}

// asks returns which of the calls have questions without an answer.
func (e *Encoder) asks(calls []string) map[string]bool {
	about := map[string]bool{}
	for _, q := range e.questions {
		about[q.of.GetCallId()] = slices.Contains(calls, q.of.GetCallId())
	}
	return about
}

// ask tells of a question.
func (e *Encoder) ask(q *question) {
	if !q.told {
		q.told = true
		e.tell("agent.custom_tool_use", callID(q.id), "name", wire.AskTool, "input", wire.AskArguments(q.of.GetQuestion()))
	}
}

// answered tells what a person answered.
func (e *Encoder) answered(r *sessionv1.QuestionResolved) {
	id := wire.AskID(r.GetCallId(), r.GetQuestionId())
	i := slices.IndexFunc(e.questions, func(q *question) bool { return q.id == id })
	if i < 0 {
		return
	}
	e.ask(e.questions[i])
	e.questions = slices.Delete(e.questions, i, i+1)
	text, failed := r.GetContentJson(), r.GetAction() != commonv1.QuestionAction_QUESTION_ACTION_ACCEPT
	if failed {
		text = "There is no answer."
	}
	e.tell("user.custom_tool_result", resultID(id), "custom_tool_use_id", callID(id), "content", texts(text), "is_error", failed)
}

func (e *Encoder) idle(reason map[string]any, details any) {
	e.tell("session.status_idle", seqID(e.at.GetFirstSeq())+"_s", "stop_reason", reason, "stop_details", details)
}

// partial are the reasons of turns that a limit has ended.
var (
	budgets = []string{"BUDGET_EXHAUSTED", "BUDGET_REFUSED"}
	steps   = []string{"MAX_STEPS"}
)

// finished tells how a turn ended, and that the session is idle unless another one waits.
func (e *Encoder) finished(id string, f *sessionv1.TurnFinished) {
	active := e.active == id
	delete(e.queued, id)
	e.said(id, true)
	reason, message := f.GetError().GetReason(), f.GetError().GetMessage()
	stop, details := "end_turn", any(nil)
	if active {
		e.active = ""
		if e.step.span != "" {
			if f.GetState() == sessionv1.TurnState_TURN_STATE_COMPLETE {
				e.commit()
			}
			e.endSpan(true, nil)
		}
		if e.step.stop == "refusal" {
			stop, details = "refusal", map[string]any{"type": "refusal", "category": nil, "explanation": nil}
		}
		e.step, e.calls, e.questions = step{}, map[string]*call{}, nil
	}
	switch f.GetState() {
	case sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		if reason != "ROLLED_BACK" {
			e.tell("user.interrupt", interruptID(id))
		}
	case sessionv1.TurnState_TURN_STATE_PARTIAL:
		switch {
		case slices.Contains(budgets, reason):
			stop = "budget_reached"
		case slices.Contains(steps, reason):
			e.fault("tool_use_limit_reached_error", message, "exhausted")
			stop = "retries_exhausted"
		default:
			e.fault("unknown_error", message, "exhausted")
			stop = "retries_exhausted"
		}
	case sessionv1.TurnState_TURN_STATE_FAILED:
		if reason == "MODEL_REFUSAL" {
			stop, details = "refusal", map[string]any{"type": "refusal", "category": nil, "explanation": message}
			break
		}
		e.fault(faultOf(reason), message, "exhausted")
		stop = "retries_exhausted"
	default:
	}
	if e.active == "" && len(e.queued) == 0 {
		e.idle(map[string]any{"type": stop}, details)
	}
}

// faultOf returns the wire's type of the error of a turn.
func faultOf(reason string) string {
	switch reason {
	case "MODEL_UNAVAILABLE":
		return "model_overloaded_error"
	}
	if strings.HasPrefix(reason, "MODEL_") {
		return "model_request_failed_error"
	}
	return "unknown_error"
}

// server tells of an MCP server that cannot be used.
func (e *Encoder) server(m *sessionv1.McpServerChanged) {
	switch m.GetState() {
	case commonv1.McpServerState_MCP_SERVER_STATE_FAILED:
		e.fault("mcp_connection_failed_error", m.GetMessage(), "retrying", "mcp_server_name", m.GetServer())
	case commonv1.McpServerState_MCP_SERVER_STATE_NEEDS_AUTHORIZATION:
		e.fault("mcp_authentication_failed_error", m.GetMessage(), "retrying", "mcp_server_name", m.GetServer())
	default:
	}
}
