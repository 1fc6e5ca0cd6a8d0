package agui

import (
	"encoding/base64"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// openText opens a message, unless it is open.
func (e *Encoder) openText(l *lane, id string) {
	if l.text == id {
		return
	}
	e.closeText(l)
	l.text, l.lastText = id, id
	if e.live() {
		e.transcript.add(id, "assistant", l.call, "")
	}
	e.emit(l, event{"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})
}

func (e *Encoder) textDelta(l *lane, id, text string) {
	if text == "" {
		return
	}
	if e.live() {
		e.transcript.add(id, "assistant", l.call, text)
	}
	e.emit(l, event{"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text})
}

func (e *Encoder) closeText(l *lane) {
	if l.text != "" {
		e.emit(l, event{"type": "TEXT_MESSAGE_END", "messageId": l.text})
	}
	l.text = ""
}

// openReasoning opens a span of reasoning with its one message, unless it is open.
func (e *Encoder) openReasoning(l *lane, id string) {
	if l.reasoning == id {
		return
	}
	e.closeReasoning(l)
	l.reasoning = id
	e.emit(l, event{"type": "REASONING_START", "messageId": id})
	e.emit(l, event{"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"})
}

func (e *Encoder) closeReasoning(l *lane) {
	if id := l.reasoning; id != "" {
		e.emit(l, event{"type": "REASONING_MESSAGE_END", "messageId": id})
		e.emit(l, event{"type": "REASONING_END", "messageId": id})
	}
	l.reasoning = ""
}

// startCall returns a call, which is shown if it is new.
func (e *Encoder) startCall(l *lane, id, tool string) *call {
	if c := e.calls[id]; c != nil {
		return c
	}
	e.closeText(l)
	c := &call{id: id, tool: tool, lane: l, message: l.lastText, open: true}
	if c.message == "" {
		c.message = l.base()
	}
	e.calls[id] = c
	if e.live() {
		e.transcript.call(c.message, l.call, id, tool)
	}
	e.emit(l, event{"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": tool, "parentMessageId": c.message})
	return c
}

func (e *Encoder) addArguments(c *call, json string) {
	if json == "" || !c.open {
		return
	}
	c.arguments += json
	if e.live() {
		e.transcript.call(c.message, c.lane.call, c.id, c.tool).Function.Arguments += json
	}
	e.emit(c.lane, event{"type": "TOOL_CALL_ARGS", "toolCallId": c.id, "delta": json})
}

func (e *Encoder) endCall(c *call) {
	if c.open {
		e.emit(c.lane, event{"type": "TOOL_CALL_END", "toolCallId": c.id})
	}
	c.open = false
}

// finishCall shows the result of a call, unless it is the client's own.
func (e *Encoder) finishCall(l *lane, f *sessionv1.ToolCallFinished) {
	c := e.calls[f.GetCallId()]
	if c == nil { // no model asked for it
		c = e.startCall(l, f.GetCallId(), f.GetTool())
	}
	e.endCall(c)
	c.done = true
	if e.Answered[c.id] && (f.GetOutcome() == sessionv1.ToolOutcome_TOOL_OUTCOME_OK || f.GetOutcome() == sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR) {
		return
	}
	id, content := c.id+"-result", resultOf(f.GetContent(), e.Old)
	if e.live() {
		m := e.transcript.at(id, "tool", l.call)
		m.Content, m.ToolCallID = content, c.id
	}
	e.emit(l, event{"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": c.id, "content": content, "role": "tool"})
}

// resultOf returns the content of a tool's result: its text, or parts if there is more that the client understands.
func resultOf(content []*commonv1.Content, old bool) any {
	media := func(c *commonv1.Content) bool {
		return c.GetImage() != nil || c.GetDocument() != nil || c.GetAudio() != nil
	}
	if old || !slices.ContainsFunc(content, media) {
		return text(content)
	}
	parts := []any{}
	for _, c := range content {
		kind, m := "document", c.GetDocument()
		switch {
		case c.GetImage() != nil:
			kind, m = "image", c.GetImage()
		case c.GetAudio() != nil:
			kind, m = "audio", c.GetAudio()
		}
		switch t := text([]*commonv1.Content{c}); {
		case m.GetData() != nil:
			source := event{"type": "data", "value": base64.StdEncoding.EncodeToString(m.GetData()), "mimeType": m.GetMediaType()}
			parts = append(parts, event{"type": kind, "source": source})
		case t != "":
			parts = append(parts, event{"type": "text", "text": t})
		}
	}
	return parts
}

// closeLane closes what an agent has open.
func (e *Encoder) closeLane(l *lane) {
	e.closeText(l)
	e.closeReasoning(l)
	for _, id := range openOf(e.calls) {
		if c := e.calls[id]; c.lane == l {
			e.endCall(c)
		}
	}
	if l.openStep != "" {
		e.emit(l, event{"type": "STEP_FINISHED", "stepName": l.openStep})
	}
	l.openStep = ""
}

// openOf returns the ids of the open calls, in an order that is the same each time.
func openOf(calls map[string]*call) (ids []string) {
	for id, c := range calls {
		if c.open {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// usage counts what model calls of a run have used.
type usage map[string]int64

func (u usage) add(s *sessionv1.Usage) {
	for name, n := range map[string]int64{
		"inputTokens":       s.GetInputTokens() + s.GetCacheReadTokens() + s.GetCacheWriteTokens(),
		"outputTokens":      s.GetOutputTokens(),
		"reasoningTokens":   s.GetThinkingTokens(),
		"cachedInputTokens": s.GetCacheReadTokens(), "cacheWriteInputTokens": s.GetCacheWriteTokens(),
	} {
		if n > 0 {
			u[name] += n
		}
	}
}

// of adds the usage of a model to the last event of a run.
func (u usage) of(named string, ev event) event {
	if len(u) == 0 {
		return ev
	}
	one := event{"totalTokens": u["inputTokens"] + u["outputTokens"]}
	for name, n := range u {
		one[name] = n
	}
	if provider, model, ok := strings.Cut(named, ":"); ok {
		one["provider"], one["model"] = provider, model
	}
	ev["usage"] = []any{one}
	return ev
}
