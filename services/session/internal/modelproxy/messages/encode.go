package messages

import (
	"encoding/json"
	"strconv"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// Encoder writes one answer.
type Encoder struct {
	id, model string
	calls     map[string]bool // ids of calls
}

// NewEncoder returns the encoder of an answer of a model, by the client's name for it.
func NewEncoder(modelName string) *Encoder {
	return &Encoder{id: "msg_" + id.New(), model: modelName, calls: map[string]bool{}}
}

// ID is the answer's id.
func (e *Encoder) ID() string { return e.id }

// answer is a whole message, or its beginning.
type answer struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
}

type usage struct {
	Input      int64    `json:"input_tokens"`
	CacheWrite int64    `json:"cache_creation_input_tokens"`
	CacheRead  int64    `json:"cache_read_input_tokens"`
	Output     int64    `json:"output_tokens"`
	Details    *details `json:"output_tokens_details,omitempty"`
}

type details struct {
	Thinking int64 `json:"thinking_tokens"`
}

func usageOf(u *sessionv1.Usage) usage {
	out := usage{Input: u.GetInputTokens(), CacheWrite: u.GetCacheWriteTokens(), CacheRead: u.GetCacheReadTokens(), Output: u.GetOutputTokens()}
	if n := u.GetThinkingTokens(); n > 0 {
		out.Details = &details{n}
	}
	return out
}

func (e *Encoder) answer() answer {
	return answer{ID: e.id, Type: "message", Role: "assistant", Model: e.model, Content: []any{}}
}

// Start returns the first event.
func (e *Encoder) Start() []byte {
	return dialog.Event(nil, "message_start", dialog.JSON(struct {
		Type    string `json:"type"`
		Message answer `json:"message"`
	}{"message_start", e.answer()}))
}

// event appends an event about a block: its type, its index and one more member.
func event(b []byte, name string, index int, member string, value []byte) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: {\"type\":\""...)
	b = append(append(b, name...), `","index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	if member != "" {
		b = append(append(append(append(b, `,"`...), member...), `":`...), value...)
	}
	return append(b, "}\n\n"...)
}

// delta returns a piece of a block.
func delta(index int, kind, member, text string) []byte {
	value := append(append([]byte(`{"type":"`), kind...), `","`...)
	value = append(append(value, member...), `":`...)
	return event(nil, "content_block_delta", index, "delta", append(dialog.Quote(value, text), '}'))
}

// Delta returns the events of a piece of the answer.
func (e *Encoder) Delta(d model.Delta) []byte {
	switch d.Kind {
	case model.TextStart:
		return event(nil, "content_block_start", d.Block, "content_block", []byte(`{"type":"text","text":""}`))
	case model.TextDelta:
		return delta(d.Block, "text_delta", "text", d.Text)
	case model.ThinkingStart:
		return event(nil, "content_block_start", d.Block, "content_block", []byte(`{"type":"thinking","thinking":"","signature":""}`))
	case model.ThinkingDelta:
		return delta(d.Block, "thinking_delta", "thinking", d.Text)
	case model.ToolUseStart:
		return event(nil, "content_block_start", d.Block, "content_block", dialog.JSON(toolUse{"tool_use", e.call(d.ProviderCallID), d.ToolName, json.RawMessage("{}")}))
	case model.ToolUseDelta:
		return delta(d.Block, "input_json_delta", "partial_json", d.Text)
	case model.ThinkingEnd:
		b := delta(d.Block, "signature_delta", "signature", dialog.Seal(d.Data))
		return event(b, "content_block_stop", d.Block, "", nil)
	case model.TextEnd, model.ToolUseEnd:
		return event(nil, "content_block_stop", d.Block, "", nil)
	}
	return nil
}

type toolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// call returns the id of a call: the provider's, unless it has none or repeats one.
func (e *Encoder) call(given string) string {
	if given == "" || e.calls[given] {
		given = "toolu_" + id.New()
	}
	e.calls[given] = true
	return given
}

// End returns the last events.
func (e *Encoder) End(r *model.Response) []byte {
	type end struct {
		StopReason   string  `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	}
	b := dialog.Event(nil, "message_delta", dialog.JSON(struct {
		Type  string `json:"type"`
		Delta end    `json:"delta"`
		Usage usage  `json:"usage"`
	}{"message_delta", end{StopReason: r.StopReason}, usageOf(r.Usage)}))
	return dialog.Event(b, "message_stop", []byte(`{"type":"message_stop"}`))
}

// Whole returns an answer that is not streamed.
func (e *Encoder) Whole(r *model.Response) []byte {
	a := e.answer()
	for _, b := range r.Blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Content:
			a.Content = append(a.Content, map[string]string{"type": "text", "text": k.Content.GetText().GetText()})
		case *sessionv1.Block_Thinking:
			a.Content = append(a.Content, map[string]string{"type": "thinking", "thinking": k.Thinking.GetText(), "signature": dialog.Seal(b.GetProviderData())})
		case *sessionv1.Block_ToolUse:
			a.Content = append(a.Content, toolUse{"tool_use", e.call(k.ToolUse.GetProviderCallId()), k.ToolUse.GetTool(), dialog.Object(k.ToolUse.GetArgumentsJson())})
		}
	}
	a.StopReason, a.Usage = &r.StopReason, usageOf(r.Usage)
	return dialog.JSON(a)
}

// Fail returns the event of an error within the answer.
func (*Encoder) Fail(f modelapi.Failure, requestID string) []byte {
	return dialog.Event(nil, "error", modelapi.Anthropic.Error(f, requestID))
}
