package openaiagents

import (
	"encoding/base64"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// turn takes the events of turns. It reports whether the event is one of them.
func (e *Encoder) turn(ev *sessionv1.Event) bool {
	id := wire.LastPart(ev.GetTurn())
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_TurnQueued:
		e.queued[id] = &sessionv1.Turn{Name: ev.GetTurn(), State: sessionv1.TurnState_TURN_STATE_QUEUED, CreateTime: ev.GetTime()}
		if content := input(b.TurnQueued.GetContent()); len(content) > 0 {
			e.said[id] = content
		}
	case *sessionv1.Event_TurnStarted:
		e.started(id)
	case *sessionv1.Event_TurnSteered:
		delete(e.queued, id)
		e.steered[id] = true
		e.message(id)
	case *sessionv1.Event_TurnWaiting:
		e.waiting(b.TurnWaiting.GetCallIds())
	case *sessionv1.Event_TurnResumed:
		e.actions = []any{}
		e.state(sessionv1.TurnState_TURN_STATE_RUNNING)
		e.snapshot(statusRunning)
	case *sessionv1.Event_TurnFinished:
		e.finished(id, b.TurnFinished)
	default:
		return false
	}
	return true
}

func (e *Encoder) state(s sessionv1.TurnState) {
	if e.active != nil {
		e.active.State = s
	}
}

// started tells that a turn runs. A message that steers another turn makes none.
func (e *Encoder) started(id string) {
	t := e.queued[id]
	if t == nil {
		t = &sessionv1.Turn{Name: e.at.GetTurn(), CreateTime: e.at.GetTime()}
	}
	delete(e.queued, id)
	e.active, e.index, e.step, e.calls = t, 0, step{}, map[string]*call{}
	e.tellTurn("created", t)
	e.snapshot(statusRunning)
	t.State, t.StartTime = sessionv1.TurnState_TURN_STATE_RUNNING, e.at.GetTime()
	e.tellTurn("in_progress", t)
	e.message(id)
}

func (e *Encoder) tellTurn(what string, t *sessionv1.Turn) map[string]any {
	return e.add(ofTurn+what, "session_id", e.session, "turn_id", wire.LastPart(t.GetName()), "turn", turnJSON(e.session, e.name, t))
}

// message tells what the user has said, once the turn takes it in.
func (e *Encoder) message(turn string) {
	content, ok := e.said[turn]
	if !ok || e.active == nil {
		return
	}
	delete(e.said, turn)
	e.inTurn(itemAdded, "output_index", nil, "item", map[string]any{
		"id": messageID(turn), "type": kindMessage, "role": "user", "turn_id": wire.LastPart(e.active.GetName()), "content": content, "phase": nil, "status": completed,
	})
}

// greeting tells what an agent says before its first turn.
func (e *Encoder) greeting(text string) {
	e.add(itemAdded, "session_id", e.session, "turn_id", nil, "output_index", nil, "item", map[string]any{
		"id": "msg_greeting", "type": kindMessage, "role": "assistant", "turn_id": "", "content": []any{outputPart(text)}, "phase": "final_answer", "status": completed,
	})
}

// waiting tells that the session needs answers. Only now are the client's calls told: the session takes their results.
func (e *Encoder) waiting(calls []string) {
	e.commit()
	e.actions = []any{}
	turn := wire.LastPart(e.active.GetName())
	for _, id := range calls {
		c := e.calls[id]
		switch {
		case c != nil && c.client:
			e.use(c)
			e.actions = append(e.actions, c.action(turn))
		case !e.asks(id, turn):
			e.actions = append(e.actions, e.approval(id, turn))
		}
	}
	e.state(sessionv1.TurnState_TURN_STATE_WAITING)
	e.snapshot(statusWaiting)
}

// action returns the call of a function as what a session needs.
func (c *call) action(turn string) map[string]any {
	return map[string]any{"type": kindFunction, "call_id": c.id, "name": c.tool, "arguments": arguments(c.arguments), "turn_id": turn}
}

// asks tells of the questions of a call that have no answer. It reports whether there are any.
func (e *Encoder) asks(call, turn string) (found bool) {
	for _, q := range e.asked.questions {
		if q.of.GetCallId() == call {
			e.use(q.as)
			e.actions = append(e.actions, q.as.action(turn))
			found = true
		}
	}
	return found
}

// approval returns what a person is to decide.
func (e *Encoder) approval(id, turn string) map[string]any {
	a := e.asked.approvals[id]
	request := map[string]any{"type": "mcp_tool_call", "server_label": ownServer, "name": nil, "arguments": map[string]any{}, "message": a.GetMessage()}
	tool := a.GetTool()
	if c := e.calls[id]; c != nil && tool == "" {
		tool = c.tool
	}
	if tool != "" {
		server, name := serverOf(tool)
		if server == "" {
			server = ownServer
		}
		request["server_label"], request["name"] = server, name
	}
	if text := a.GetArgumentsJson(); text != "" {
		request["arguments"] = arguments(text)
	}
	if a.GetMessage() == "" {
		request["message"] = "May " + tool + " run?"
	}
	return map[string]any{"type": "mcp_approval_request", "request_id": approvalPrefix + id, "turn_id": turn, "request": request}
}

// serverOf splits the name of an MCP server's tool; another tool has no server.
func serverOf(tool string) (server, name string) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return "", tool
	}
	server, name, _ = strings.Cut(rest, "__")
	return server, name
}

// finished tells how a turn ended, and that the session is idle unless another one waits.
func (e *Encoder) finished(id string, f *sessionv1.TurnFinished) {
	delete(e.queued, id)
	delete(e.said, id)
	if e.steered[id] {
		delete(e.steered, id)
		return // it was part of another one
	}
	if e.active == nil || wire.LastPart(e.active.GetName()) != id {
		return // it was cancelled before it began
	}
	if f.GetState() == sessionv1.TurnState_TURN_STATE_COMPLETE {
		e.commit()
	}
	e.drop()
	t := e.active
	t.State, t.Error, t.Usage, t.EndTime = f.GetState(), f.GetError(), f.GetUsage(), e.at.GetTime()
	e.total = plus(e.total, f.GetUsage())
	if text := f.GetOutputJson(); text != "" && e.schema {
		e.structured(id, text)
	}
	body := e.tellTurn(turnStatus(t.GetState()), t)
	body["usage"] = nil
	if f.GetUsage() != nil {
		body["usage"] = usageJSON(f.GetUsage())
	}
	e.active, e.actions, e.calls, e.asked = nil, []any{}, map[string]*call{}, asked{approvals: map[string]*sessionv1.ApprovalRequested{}}
	if len(e.queued) == 0 {
		e.snapshot(statusIdle)
	}
}

// structured tells the output that an agent's schema asks for: it is the final answer of its turn.
func (e *Encoder) structured(turn, text string) {
	part := []any{outputPart(text)}
	item := map[string]any{"id": "msg_o_" + turn, "type": kindMessage, "role": "assistant", "turn_id": turn, "content": part, "phase": "final_answer", "status": completed}
	e.inTurn(itemAdded, "output_index", e.index, "item", item)
	e.inTurn(itemDone, "output_index", e.index, "item", item)
	e.index++
}

func plus(a, b *sessionv1.Usage) *sessionv1.Usage {
	return &sessionv1.Usage{
		InputTokens: a.GetInputTokens() + b.GetInputTokens(), OutputTokens: a.GetOutputTokens() + b.GetOutputTokens(), CacheReadTokens: a.GetCacheReadTokens() + b.GetCacheReadTokens(),
		CacheWriteTokens: a.GetCacheWriteTokens() + b.GetCacheWriteTokens(), ThinkingTokens: a.GetThinkingTokens() + b.GetThinkingTokens(), CostNanoUsd: a.GetCostNanoUsd() + b.GetCostNanoUsd(),
	}
}

func turnStatus(s sessionv1.TurnState) string {
	switch s {
	case sessionv1.TurnState_TURN_STATE_RUNNING:
		return inProgress
	case sessionv1.TurnState_TURN_STATE_WAITING:
		return "waiting"
	case sessionv1.TurnState_TURN_STATE_COMPLETE:
		return completed
	case sessionv1.TurnState_TURN_STATE_PARTIAL, sessionv1.TurnState_TURN_STATE_FAILED:
		return failed
	case sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		return "cancelled"
	default:
		return "queued"
	}
}

// turnJSON returns a turn as the wire has it.
func turnJSON(session, agent string, t *sessionv1.Turn) map[string]any {
	out := map[string]any{
		"id": wire.LastPart(t.GetName()), "object": "agent.session.turn", "session_id": session, "agent_id": agent, "subagent_id": nil, "status": turnStatus(t.GetState()),
		"created_at": t.GetCreateTime().GetSeconds(), "started_at": seconds(t.GetStartTime()), "completed_at": seconds(t.GetEndTime()), "error": nil, "usage": nil,
	}
	if t.GetUsage() != nil {
		out["usage"] = usageJSON(t.GetUsage())
	}
	if turnStatus(t.GetState()) == failed {
		out["error"] = map[string]any{"code": codeOf(t.GetError().GetReason()), "message": t.GetError().GetMessage()}
	}
	return out
}

// seconds returns a time as the wire has it; null for none.
func seconds(t *timestamppb.Timestamp) any {
	if t == nil {
		return nil
	}
	return t.GetSeconds()
}

// turnCodes are the wire's codes for the reasons of turns that did not end well.
var turnCodes = map[string][]string{
	"context_length_exceeded": {"CONTEXT_FULL"},
	"max_output_tokens":       {"MAX_OUTPUT_TOKENS"},
	"session_budget_exceeded": {"BUDGET_EXHAUSTED", "BUDGET_REFUSED", "MAX_STEPS"},
	"request_timeout":         {"MAX_WALL_TIME"},
	"authentication_error":    {"MODEL_AUTHENTICATION"},
	"server_overloaded":       {"MODEL_UNAVAILABLE"},
	"invalid_request":         {"MODEL_REQUEST_REFUSED", "MODEL_REFUSAL"},
	"resource_not_found":      {"MODEL_NOT_FOUND", "AGENT_GONE"},
	"sandbox_error":           {"NODE_LOST", "TOOLS_UNAVAILABLE", "TOOL_FAILURES"},
}

func codeOf(reason string) string {
	for code, reasons := range turnCodes {
		if slices.Contains(reasons, reason) {
			return code
		}
	}
	return "internal_error"
}

// input returns what a user says as the wire has it.
func input(content []*commonv1.Content) []any {
	out := []any{}
	text := func(s string) { out = append(out, map[string]any{"type": "input_text", "text": s}) }
	for _, c := range content {
		switch k := c.GetKind().(type) {
		case *commonv1.Content_Text:
			text(k.Text.GetText())
		case *commonv1.Content_Image:
			out = append(out, map[string]any{"type": "input_image", "image_url": mediaURL(k.Image)})
		case *commonv1.Content_Document:
			text("(document, " + k.Document.GetMediaType() + ") " + k.Document.GetTitle())
		case *commonv1.Content_Resource:
			text(k.Resource.GetText())
		case *commonv1.Content_ResourceLink:
			text(k.ResourceLink.GetUri())
		case *commonv1.Content_Audio:
			text("(audio, " + k.Audio.GetMediaType() + ")")
		}
	}
	return out
}

func mediaURL(m *commonv1.Media) string {
	if m.GetUri() != "" {
		return m.GetUri()
	}
	return "data:" + m.GetMediaType() + ";base64," + base64.StdEncoding.EncodeToString(m.GetData())
}
