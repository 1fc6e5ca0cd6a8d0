package managed

import (
	"encoding/json"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// output takes the events of model calls. It reports whether the event is one of them.
func (e *Encoder) output(ev *sessionv1.Event) bool {
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_StepStarted:
		e.step = step{span: seqID(ev.GetFirstSeq())}
		e.tell("span.model_request_start", e.step.span)
	case *sessionv1.Event_StepRestarted:
		e.restarted(b.StepRestarted)
	case *sessionv1.Event_StepFinished:
		e.commit()
		e.endSpan(false, b.StepFinished.GetUsage())
		e.step.stop = b.StepFinished.GetStopReason()
	case *sessionv1.Event_TextStarted:
		e.begin(&block{index: b.TextStarted.GetBlock(), seq: ev.GetFirstSeq()})
	case *sessionv1.Event_TextDelta:
		if open := e.open(b.TextDelta.GetBlock()); open != nil {
			open.text.WriteString(b.TextDelta.GetText())
			e.delta(open, b.TextDelta.GetText())
		}
	case *sessionv1.Event_ThinkingStarted:
		e.begin(&block{index: b.ThinkingStarted.GetBlock(), seq: ev.GetFirstSeq(), thinking: true})
	case *sessionv1.Event_TextFinished, *sessionv1.Event_ThinkingDelta, *sessionv1.Event_ThinkingFinished:
	default:
		return false
	}
	return true
}

func (e *Encoder) begin(b *block) {
	e.step.blocks = append(e.step.blocks, b)
	e.start(b)
}

func (e *Encoder) open(index int32) *block {
	for i := len(e.step.blocks) - 1; i >= 0; i-- {
		if b := e.step.blocks[i]; b.index == index {
			return b
		}
	}
	return nil
}

// restarted drops what a step has produced: its previews end with the end of the model call.
func (e *Encoder) restarted(r *sessionv1.StepRestarted) {
	for _, c := range e.step.calls {
		if c.seq >= r.GetVoidFirstSeq() && c.seq <= r.GetVoidLastSeq() && !c.told {
			delete(e.calls, c.id)
		}
	}
	if e.step.span != "" {
		e.endSpan(true, nil)
	}
	e.step = step{}
}

func (e *Encoder) endSpan(failed bool, u *sessionv1.Usage) {
	e.tell("span.model_request_end", seqID(e.at.GetFirstSeq())+"_m", "model_request_start_id", e.step.span, "is_error", failed, "model_usage", map[string]any{
		"input_tokens": u.GetInputTokens(), "output_tokens": u.GetOutputTokens(),
		"cache_creation_input_tokens": u.GetCacheWriteTokens(), "cache_read_input_tokens": u.GetCacheReadTokens(), "speed": "standard",
	})
	e.step.span = ""
}

// commit tells what the step has said: its message is committed. Calls of the client's tools follow.
func (e *Encoder) commit() {
	for _, b := range e.step.blocks {
		if b.thinking {
			e.tell("agent.thinking", b.id())
			continue
		}
		e.tell("agent.message", b.id(), "content", texts(b.text.String()))
	}
	e.step.blocks = nil
	for _, c := range e.step.calls {
		if c.custom && !c.told {
			c.told = true
			if c.hosted {
				e.tell("agent.tool_use", callID(c.id), "name", c.tool, "input", input(c.arguments), "evaluated_permission", "allow")
				continue
			}
			e.tell("agent.custom_tool_use", callID(c.id), "name", c.tool, "input", input(c.arguments))
		}
	}
}

// tool takes the events of tool calls.
func (e *Encoder) tool(ev *sessionv1.Event) {
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_ToolCallArguments:
		a := b.ToolCallArguments
		c := &call{id: a.GetCallId(), tool: a.GetTool(), arguments: a.GetArgumentsJson(), seq: ev.GetFirstSeq(), custom: e.custom[a.GetTool()], hosted: e.hosted[a.GetTool()]}
		if old := e.calls[c.id]; old != nil {
			c.told = old.told
		}
		e.calls[c.id] = c
		e.step.calls = append(e.step.calls, c)
	case *sessionv1.Event_ToolCallDecision:
		e.commit()
		e.use(e.calls[b.ToolCallDecision.GetCallId()], b.ToolCallDecision.GetDecision())
	case *sessionv1.Event_ToolCallFinished:
		e.result(b.ToolCallFinished)
	case *sessionv1.Event_QuestionRequested:
		q := b.QuestionRequested
		e.questions = append(e.questions, &question{id: wire.AskID(q.GetCallId(), q.GetQuestion().GetId()), of: q})
	case *sessionv1.Event_QuestionResolved:
		e.answered(b.QuestionResolved)
	case *sessionv1.Event_ApprovalResolved:
		e.confirmed(b.ApprovalResolved)
	}
}

// use tells of a call that a decision has been made on.
func (e *Encoder) use(c *call, d sessionv1.Decision) {
	if c == nil || c.told || c.custom {
		return
	}
	c.told = true
	verdict := "allow"
	switch d {
	case sessionv1.Decision_DECISION_ASK:
		verdict = "ask"
	case sessionv1.Decision_DECISION_DENY:
		verdict = "deny"
	default:
	}
	if server, name, ok := mcpTool(c.tool); ok {
		e.tell("agent.mcp_tool_use", callID(c.id), "mcp_server_name", server, "name", name, "input", input(c.arguments), "evaluated_permission", verdict)
		return
	}
	e.tell("agent.tool_use", callID(c.id), "name", toolName(c.tool), "input", input(c.arguments), "evaluated_permission", verdict)
}

// result tells how a call ended.
func (e *Encoder) result(f *sessionv1.ToolCallFinished) {
	c := e.calls[f.GetCallId()]
	if c == nil || c.ended {
		return // CallTool made it, and no model
	}
	c.ended = true
	e.commit()
	failed := f.GetOutcome() != sessionv1.ToolOutcome_TOOL_OUTCOME_OK
	content := blocks(f.GetContent())
	if c.hosted { // every end is told, or a worker would run the call
		e.tell("user.tool_result", resultID(c.id), "tool_use_id", callID(c.id), "content", content, "is_error", failed)
		return
	}
	if c.custom {
		if f.GetOutcome() == sessionv1.ToolOutcome_TOOL_OUTCOME_OK || f.GetOutcome() == sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR {
			e.tell("user.custom_tool_result", resultID(c.id), "custom_tool_use_id", callID(c.id), "content", content, "is_error", failed)
		}
		return
	}
	e.use(c, sessionv1.Decision_DECISION_DENY) // a call that could not even be decided on
	if _, _, ok := mcpTool(c.tool); ok {
		e.tell("agent.mcp_tool_result", resultID(c.id), "mcp_tool_use_id", callID(c.id), "content", content, "is_error", failed)
		return
	}
	e.tell("agent.tool_result", resultID(c.id), "tool_use_id", callID(c.id), "content", content, "is_error", failed)
}

// confirmed tells of a person's answer.
func (e *Encoder) confirmed(r *sessionv1.ApprovalResolved) {
	c := e.calls[r.GetCallId()]
	if c == nil || r.GetExpired() {
		return
	}
	answer := "deny"
	if r.GetApproved() {
		answer = "allow"
	}
	e.tell("user.tool_confirmation", confirmationID(c.id), "tool_use_id", callID(c.id), "result", answer)
	if answer == "deny" && r.GetComment() != "" {
		e.out[len(e.out)-1].Body["deny_message"] = r.GetComment()
	}
}

// mcpTool splits the name of an MCP server's tool.
func mcpTool(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}

// input returns the arguments of a call, as the model wrote them.
func input(text string) any {
	if json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.RawMessage(text)
	}
	return map[string]any{}
}

func texts(text string) []any { return []any{map[string]any{"type": "text", "text": text}} }

// blocks returns content as the wire has it.
func blocks(content []*commonv1.Content) []any {
	out := []any{}
	for _, c := range content {
		switch k := c.GetKind().(type) {
		case *commonv1.Content_Text:
			out = append(out, map[string]any{"type": "text", "text": k.Text.GetText()})
		case *commonv1.Content_Image:
			out = append(out, map[string]any{"type": "image", "source": source(k.Image)})
		case *commonv1.Content_Document:
			doc := map[string]any{"type": "document", "source": source(k.Document)}
			if k.Document.GetTitle() != "" {
				doc["title"] = k.Document.GetTitle()
			}
			out = append(out, doc)
		case *commonv1.Content_Resource:
			out = append(out, map[string]any{"type": "text", "text": k.Resource.GetText()})
		case *commonv1.Content_ResourceLink:
			out = append(out, map[string]any{"type": "text", "text": k.ResourceLink.GetUri()})
		case *commonv1.Content_Audio:
			out = append(out, map[string]any{"type": "text", "text": "(audio, " + k.Audio.GetMediaType() + ")"})
		}
	}
	return out
}

func source(m *commonv1.Media) map[string]any {
	switch {
	case strings.HasPrefix(m.GetUri(), "file://"):
		return map[string]any{"type": "file", "file_id": filePrefix + strings.TrimPrefix(m.GetUri(), "file://")}
	case m.GetUri() != "":
		return map[string]any{"type": "url", "url": m.GetUri()}
	case m.GetMediaType() == "text/plain":
		return map[string]any{"type": "text", "media_type": "text/plain", "data": string(m.GetData())}
	}
	return map[string]any{"type": "base64", "media_type": m.GetMediaType(), "data": m.GetData()}
}
