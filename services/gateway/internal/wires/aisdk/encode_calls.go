package aisdk

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// called takes an event of a tool call.
func (t *turn) called(e *sessionv1.Event) bool {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ToolCallStarted:
		t.make(b.ToolCallStarted.GetCallId(), b.ToolCallStarted.GetTool())
		t.tool(b.ToolCallStarted.GetCallId(), chunk{Type: "tool-input-start", ToolName: b.ToolCallStarted.GetTool()})
	case *sessionv1.Event_ToolCallArgumentsDelta:
		d := b.ToolCallArgumentsDelta
		if c := t.calls[d.GetCallId()]; c != nil && !c.shown {
			t.emit(chunk{Type: "tool-input-delta", ToolCallID: d.GetCallId(), InputTextDelta: text(d.GetJson())})
		}
	case *sessionv1.Event_ToolCallArguments:
		t.arguments(b.ToolCallArguments.GetCallId(), b.ToolCallArguments.GetTool(), b.ToolCallArguments.GetArgumentsJson())
	case *sessionv1.Event_ToolCallProgress:
		t.data("tool-progress", b.ToolCallProgress.GetCallId(), true, map[string]string{"toolCallId": b.ToolCallProgress.GetCallId(), "message": b.ToolCallProgress.GetMessage()})
	case *sessionv1.Event_ToolCallOutputDelta:
		d := b.ToolCallOutputDelta
		t.data("tool-output", d.GetCallId(), true, map[string]string{
			"toolCallId": d.GetCallId(), "stream": d.GetStream(), "text": strings.ToValidUTF8(string(d.GetData()), "\uFFFD"),
		})
	case *sessionv1.Event_ToolCallFinished:
		t.result(b.ToolCallFinished)
	case *sessionv1.Event_ApprovalRequested:
		t.approval(b.ApprovalRequested)
	case *sessionv1.Event_ApprovalResolved:
		t.resolved(b.ApprovalResolved)
	default:
		return false
	}
	return true
}

// make remembers a call.
func (t *turn) make(id, tool string) *call {
	c := t.calls[id]
	if c == nil {
		c = &call{tool: tool}
		t.calls[id] = c
		t.order, t.fresh = append(t.order, id), append(t.fresh, id)
	}
	return c
}

// tool adds a chunk of a call, which opens a step if none is open.
func (t *turn) tool(id string, c chunk) {
	t.openStep()
	t.acted = true
	c.ToolCallID = id
	c.Dynamic = !t.Typed && c.Type != "tool-approval-request" && c.Type != "tool-output-denied"
	t.emit(c)
}

// arguments shows the complete arguments of a call.
func (t *turn) arguments(id, tool, arguments string) {
	c := t.make(id, tool)
	if c.shown {
		return
	}
	c.shown = true
	raw, _ := input(arguments)
	t.tool(id, chunk{Type: "tool-input-available", ToolName: tool, Input: raw})
}

// approval asks a person. What belongs to no call, such as a budget, is shown as a call of its own.
func (t *turn) approval(a *sessionv1.ApprovalRequested) {
	id := a.GetCallId()
	tool, arguments := a.GetTool(), a.GetArgumentsJson()
	if t.calls[id] == nil && a.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET {
		tool = "continue_beyond_budget"
		arguments = string(value(map[string]string{"message": a.GetMessage(), "limit": a.GetRule()}))
	}
	t.arguments(id, cmp.Or(tool, "approval"), arguments)
	t.calls[id].asks = true
	if t.Version != 5 {
		t.tool(id, chunk{Type: "tool-approval-request", ApprovalID: id})
	}
}

// resolved ends the part of an approval that belongs to no call. Others end with their call.
func (t *turn) resolved(r *sessionv1.ApprovalResolved) {
	c := t.calls[r.GetCallId()]
	if c == nil || c.tool != "continue_beyond_budget" {
		return
	}
	if !r.GetApproved() {
		t.denied(r.GetCallId(), c, cmp.Or(r.GetComment(), "A person refused."))
		return
	}
	c.end = true
	t.tool(r.GetCallId(), chunk{Type: "tool-output-available", Output: value(map[string]any{"approved": true})})
}

// denied says that a person refused a call.
func (t *turn) denied(id string, c *call, why string) {
	c.end = true
	if t.Version == 5 || !c.asks {
		t.tool(id, chunk{Type: "tool-output-error", ErrorText: text(why)})
		return
	}
	t.tool(id, chunk{Type: "tool-output-denied"})
}

// result shows how a call ended.
func (t *turn) result(f *sessionv1.ToolCallFinished) {
	c := t.calls[f.GetCallId()]
	if c == nil || !c.shown {
		t.arguments(f.GetCallId(), f.GetTool(), "")
		c = t.calls[f.GetCallId()]
	}
	if c.end {
		return
	}
	c.end = true
	switch f.GetOutcome() {
	case sessionv1.ToolOutcome_TOOL_OUTCOME_OK:
		t.tool(f.GetCallId(), chunk{Type: "tool-output-available", Output: output(f.GetContent())})
	case sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED:
		why, _ := words(f.GetContent())
		t.denied(f.GetCallId(), c, cmp.Or(why, "A person refused the call."))
	default:
		why, ok := words(f.GetContent())
		if !ok {
			why = string(output(f.GetContent()))
		}
		t.tool(f.GetCallId(), chunk{Type: "tool-output-error", ErrorText: text(cmp.Or(why, "The call ended without a result."))})
	}
}

// endCalls ends the calls without a result, so that no application waits for them.
func (t *turn) endCalls(f *sessionv1.TurnFinished) {
	why := "The turn ended before the call had a result."
	if m := f.GetError().GetMessage(); m != "" {
		why += " " + m
	}
	for _, id := range slices.Clone(t.order) {
		if c := t.calls[id]; !c.end {
			t.arguments(id, c.tool, "")
			c.end = true
			t.tool(id, chunk{Type: "tool-output-error", ErrorText: text(why)})
		}
	}
}

// output returns a result: its text, or the list of what it has.
func output(content []*commonv1.Content) json.RawMessage {
	if s, ok := words(content); ok {
		return value(s)
	}
	type shown struct {
		Type      string `json:"type"`
		Text      string `json:"text,omitempty"`
		MediaType string `json:"mediaType,omitempty"`
		Data      string `json:"data,omitempty"`
		Name      string `json:"name,omitempty"`
		URI       string `json:"uri,omitempty"`
	}
	all := []shown{}
	media := func(kind string, m *commonv1.Media) shown {
		return shown{Type: kind, MediaType: m.GetMediaType(), Name: m.GetTitle(), URI: m.GetUri(), Data: base64.StdEncoding.EncodeToString(m.GetData())}
	}
	for _, c := range content {
		switch k := c.GetKind().(type) {
		case *commonv1.Content_Text:
			all = append(all, shown{Type: "text", Text: k.Text.GetText()})
		case *commonv1.Content_Image:
			all = append(all, media("image", k.Image))
		case *commonv1.Content_Document:
			all = append(all, media("document", k.Document))
		case *commonv1.Content_Audio:
			all = append(all, media("audio", k.Audio))
		case *commonv1.Content_Resource:
			r := k.Resource
			all = append(all, shown{Type: "resource", URI: r.GetUri(), MediaType: r.GetMediaType(), Text: r.GetText(), Data: base64.StdEncoding.EncodeToString(r.GetData())})
		case *commonv1.Content_ResourceLink:
			l := k.ResourceLink
			all = append(all, shown{Type: "resource_link", URI: l.GetUri(), MediaType: l.GetMediaType(), Name: l.GetName(), Text: l.GetDescription()})
		}
	}
	return value(map[string]any{"content": all})
}
