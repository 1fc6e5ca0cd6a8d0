package responses

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// Encoder writes one answer.
type Encoder struct {
	id, model string
	made      int64
	number    int64 // of the next event
	calls     map[string]bool
	open      outItem // the item that is being written
	text      strings.Builder
	items     []any // the items so far
}

// NewEncoder returns the encoder of an answer of a model, by the client's name for it.
func NewEncoder(modelName string) *Encoder {
	return &Encoder{id: "resp_" + id.New(), model: modelName, made: time.Now().Unix(), calls: map[string]bool{}}
}

// ID is the answer's id.
func (e *Encoder) ID() string { return e.id }

// outItem is an item of the output.
type outItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status,omitempty"`
	Role      string `json:"role,omitempty"`
	Content   any    `json:"content,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Summary   any    `json:"summary,omitempty"`
	Encrypted string `json:"encrypted_content,omitempty"`
}

type outText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

type summaryText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func newText(s string) outText { return outText{"output_text", s, []any{}} }

// response is the answer as an object.
func (e *Encoder) response(status string, output []any) map[string]any {
	if output == nil {
		output = []any{}
	}
	return map[string]any{
		"id": e.id, "object": "response", "created_at": e.made, "status": status, "model": e.model, "output": output,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": true,
		"temperature": nil, "top_p": nil, "tool_choice": "auto", "tools": []any{}, "store": false, "usage": nil,
	}
}

// event appends an event with its type and number; members is the rest of it, beginning with a comma.
func (e *Encoder) event(b []byte, kind string, members []byte) []byte {
	b = append(append(append(b, "event: "...), kind...), "\ndata: {\"type\":\""...)
	b = append(append(b, kind...), `","sequence_number":`...)
	b = append(strconv.AppendInt(b, e.number, 10), members...)
	e.number++
	return append(b, "}\n\n"...)
}

// members returns the members of a value, beginning with a comma.
func members(v any) []byte {
	b := bytes.TrimSuffix(dialog.JSON(v), []byte("}"))
	b[0] = ','
	return b
}

// Start returns the first events.
func (e *Encoder) Start() []byte {
	r := members(map[string]any{"response": e.response("in_progress", nil)})
	return e.event(e.event(nil, "response.created", r), "response.in_progress", r)
}

// place is where an event belongs.
type place struct {
	ItemID       string `json:"item_id"`
	OutputIndex  int    `json:"output_index"`
	ContentIndex *int   `json:"content_index,omitempty"`
	SummaryIndex *int   `json:"summary_index,omitempty"`
	Delta        any    `json:"delta,omitempty"`
	Text         any    `json:"text,omitempty"`
	Part         any    `json:"part,omitempty"`
	Arguments    any    `json:"arguments,omitempty"`
	Name         string `json:"name,omitempty"`
	Logprobs     any    `json:"logprobs,omitempty"`
}

var first = 0

func (e *Encoder) inText() place {
	return place{ItemID: e.open.ID, OutputIndex: len(e.items), ContentIndex: &first}
}

func (e *Encoder) inSummary() place {
	return place{ItemID: e.open.ID, OutputIndex: len(e.items), SummaryIndex: &first}
}

// begin opens an item.
func (e *Encoder) begin(it outItem) []byte {
	e.open = it
	e.text.Reset()
	return e.event(nil, "response.output_item.added", members(map[string]any{"output_index": len(e.items), "item": it}))
}

// end closes the item.
func (e *Encoder) end(b []byte) []byte {
	b = e.event(b, "response.output_item.done", members(map[string]any{"output_index": len(e.items), "item": e.open}))
	e.items = append(e.items, e.open)
	return b
}

// Delta returns the events of a piece of the answer.
func (e *Encoder) Delta(d model.Delta) []byte {
	switch d.Kind {
	case model.TextStart:
		b := e.begin(outItem{ID: "msg_" + id.New(), Type: "message", Status: "in_progress", Role: "assistant", Content: []any{}})
		p := e.inText()
		p.Part = newText("")
		return e.event(b, "response.content_part.added", members(p))
	case model.ThinkingStart:
		b := e.begin(outItem{ID: "rs_" + id.New(), Type: "reasoning", Summary: []any{}})
		p := e.inSummary()
		p.Part = summaryText{Type: "summary_text"}
		return e.event(b, "response.reasoning_summary_part.added", members(p))
	case model.ToolUseStart:
		return e.begin(outItem{ID: "fc_" + id.New(), Type: "function_call", Status: "in_progress", CallID: e.call(d.ProviderCallID), Name: d.ToolName, Arguments: ""})
	case model.TextDelta:
		p := e.inText()
		p.Delta, p.Logprobs = d.Text, []any{}
		return e.grow(d, "response.output_text.delta", p)
	case model.ThinkingDelta:
		p := e.inSummary()
		p.Delta = d.Text
		return e.grow(d, "response.reasoning_summary_text.delta", p)
	case model.ToolUseDelta:
		return e.grow(d, "response.function_call_arguments.delta", place{ItemID: e.open.ID, OutputIndex: len(e.items), Delta: d.Text})
	default:
		return e.close(d)
	}
}

func (e *Encoder) grow(d model.Delta, kind string, p place) []byte {
	e.text.WriteString(d.Text)
	return e.event(nil, kind, members(p))
}

// close returns the events of the end of an item.
func (e *Encoder) close(d model.Delta) (b []byte) {
	whole := e.text.String()
	switch d.Kind {
	case model.TextEnd:
		p := e.inText()
		p.Text, p.Logprobs = whole, []any{}
		b = e.event(nil, "response.output_text.done", members(p))
		p = e.inText()
		p.Part = newText(whole)
		b = e.event(b, "response.content_part.done", members(p))
		e.open.Status, e.open.Content = "completed", []any{newText(whole)}
	case model.ThinkingEnd:
		p := e.inSummary()
		p.Text = whole
		b = e.event(nil, "response.reasoning_summary_text.done", members(p))
		p = e.inSummary()
		p.Part = summaryText{"summary_text", whole}
		b = e.event(b, "response.reasoning_summary_part.done", members(p))
		e.open.Summary, e.open.Encrypted = []any{summaryText{"summary_text", whole}}, dialog.Seal(d.Data)
	case model.ToolUseEnd:
		arguments := argumentsOf(whole)
		b = e.event(nil, "response.function_call_arguments.done", members(place{ItemID: e.open.ID, OutputIndex: len(e.items), Arguments: arguments, Name: e.open.Name}))
		e.open.Status, e.open.Arguments = "completed", arguments
	default:
		return nil
	}
	return e.end(b)
}

func argumentsOf(s string) string {
	if strings.TrimSpace(s) == "" {
		return "{}"
	}
	return s
}

// call returns the id of a call: the provider's, unless it has none or repeats one.
func (e *Encoder) call(given string) string {
	if given == "" || e.calls[given] {
		given = "call_" + id.New()
	}
	e.calls[given] = true
	return given
}

// whole returns the answer as an object.
func (e *Encoder) whole(r *model.Response, output []any) (status string, _ map[string]any) {
	status, reason := "completed", ""
	switch r.StopReason {
	case "max_tokens":
		status, reason = "incomplete", "max_output_tokens"
	case "refusal":
		status, reason = "incomplete", "content_filter"
	}
	v := e.response(status, output)
	if reason != "" {
		v["incomplete_details"] = map[string]string{"reason": reason}
	}
	u := r.Usage
	input := u.GetInputTokens() + u.GetCacheReadTokens() + u.GetCacheWriteTokens()
	v["usage"] = map[string]any{
		"input_tokens": input, "input_tokens_details": map[string]int64{"cached_tokens": u.GetCacheReadTokens()},
		"output_tokens": u.GetOutputTokens(), "output_tokens_details": map[string]int64{"reasoning_tokens": u.GetThinkingTokens()},
		"total_tokens": input + u.GetOutputTokens(),
	}
	return status, v
}

// End returns the last event.
func (e *Encoder) End(r *model.Response) []byte {
	status, v := e.whole(r, e.items)
	return e.event(nil, "response."+status, members(map[string]any{"response": v}))
}

// Whole returns an answer that is not streamed.
func (e *Encoder) Whole(r *model.Response) []byte {
	var output []any
	for _, b := range r.Blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Content:
			output = append(output, outItem{ID: "msg_" + id.New(), Type: "message", Status: "completed", Role: "assistant", Content: []any{newText(k.Content.GetText().GetText())}})
		case *sessionv1.Block_Thinking:
			output = append(output, outItem{ID: "rs_" + id.New(), Type: "reasoning", Summary: []any{summaryText{"summary_text", k.Thinking.GetText()}}, Encrypted: dialog.Seal(b.GetProviderData())})
		case *sessionv1.Block_ToolUse:
			output = append(output, outItem{
				ID: "fc_" + id.New(), Type: "function_call", Status: "completed",
				CallID: e.call(k.ToolUse.GetProviderCallId()), Name: k.ToolUse.GetTool(), Arguments: argumentsOf(k.ToolUse.GetArgumentsJson()),
			})
		}
	}
	_, v := e.whole(r, output)
	return dialog.JSON(v)
}

// Fail returns the event of an error within the answer. The SDKs differ in where they look for it.
func (e *Encoder) Fail(f modelapi.Failure, requestID string) []byte {
	inner := bytes.TrimSuffix(modelapi.OpenAI.Error(f, requestID), []byte("}"))
	inner[0] = ','
	rest := members(map[string]any{"code": "server_error", "message": f.Message, "param": nil})
	return e.event(nil, "error", append(rest, inner...))
}
