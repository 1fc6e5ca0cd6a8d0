package chat

import (
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
	head      []byte // of a chunk, up to its choices
	usage     bool
	index     int // of the current call
	calls     map[string]bool
}

// NewEncoder returns the encoder of an answer of a model, by the client's name for it. With usage a stream
// ends with the usage.
func NewEncoder(modelName string, usage bool) *Encoder {
	e := &Encoder{id: "chatcmpl-" + id.New(), model: modelName, made: time.Now().Unix(), usage: usage, index: -1, calls: map[string]bool{}}
	e.head = append([]byte(`{"id":"`), e.id...)
	e.head = append(e.head, `","object":"chat.completion.chunk","created":`...)
	e.head = strconv.AppendInt(e.head, e.made, 10)
	e.head = append(dialog.Quote(append(e.head, `,"model":`...), modelName), `,"choices":[`...)
	return e
}

// ID is the answer's id.
func (e *Encoder) ID() string { return e.id }

// chunk returns a chunk with a delta.
func (e *Encoder) chunk(delta []byte, finish string) []byte {
	b := append([]byte("data: "), e.head...)
	b = append(append(append(b, `{"index":0,"delta":`...), delta...), `,"finish_reason":`...)
	if finish == "" {
		b = append(b, "null"...)
	} else {
		b = dialog.Quote(b, finish)
	}
	b = append(b, "}]"...)
	if e.usage {
		b = append(b, `,"usage":null`...)
	}
	return append(b, "}\n\n"...)
}

// Start returns the first chunk.
func (e *Encoder) Start() []byte { return e.chunk([]byte(`{"role":"assistant","content":""}`), "") }

// Delta returns the chunk of a piece of the answer.
func (e *Encoder) Delta(d model.Delta) []byte {
	switch d.Kind {
	case model.TextDelta:
		return e.chunk(append(dialog.Quote([]byte(`{"content":`), d.Text), '}'), "")
	case model.ThinkingDelta: // not in OpenAI's API; compatible servers send it so
		return e.chunk(append(dialog.Quote([]byte(`{"reasoning_content":`), d.Text), '}'), "")
	case model.ToolUseStart:
		e.index++
		return e.chunk(dialog.JSON(map[string]any{"tool_calls": []any{map[string]any{
			"index": e.index, "id": e.call(d.ProviderCallID), "type": "function", "function": map[string]string{"name": d.ToolName, "arguments": ""},
		}}}), "")
	case model.ToolUseDelta:
		b := strconv.AppendInt([]byte(`{"tool_calls":[{"index":`), int64(e.index), 10)
		return e.chunk(append(dialog.Quote(append(b, `,"function":{"arguments":`...), d.Text), "}}]}"...), "")
	default:
		return nil
	}
}

// call returns the id of a call: the provider's, unless it has none or repeats one.
func (e *Encoder) call(given string) string {
	if given == "" || e.calls[given] {
		given = "call_" + id.New()
	}
	e.calls[given] = true
	return given
}

func finish(stop string) string {
	switch stop {
	case "tool_use":
		return "tool_calls"
	case "max_tokens":
		return "length"
	case "refusal":
		return "content_filter"
	}
	return "stop"
}

// End returns the last chunks.
func (e *Encoder) End(r *model.Response) []byte {
	b := e.chunk([]byte("{}"), finish(r.StopReason))
	if e.usage {
		b = append(append(b, "data: "...), e.head...)
		b = append(append(append(b, `],"usage":`...), dialog.JSON(usageOf(r.Usage))...), "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

type usage struct {
	Prompt            int64             `json:"prompt_tokens"`
	Completion        int64             `json:"completion_tokens"`
	Total             int64             `json:"total_tokens"`
	PromptDetails     promptDetails     `json:"prompt_tokens_details"`
	CompletionDetails completionDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	Cached int64 `json:"cached_tokens"`
}

type completionDetails struct {
	Reasoning int64 `json:"reasoning_tokens"`
}

func usageOf(u *sessionv1.Usage) usage {
	prompt := u.GetInputTokens() + u.GetCacheReadTokens() + u.GetCacheWriteTokens()
	return usage{
		Prompt: prompt, Completion: u.GetOutputTokens(), Total: prompt + u.GetOutputTokens(),
		PromptDetails: promptDetails{u.GetCacheReadTokens()}, CompletionDetails: completionDetails{u.GetThinkingTokens()},
	}
}

// said is the message of a whole answer.
type said struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// Whole returns an answer that is not streamed.
func (e *Encoder) Whole(r *model.Response) []byte {
	m := said{Role: "assistant"}
	var text, thought []string
	for _, b := range r.Blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Content:
			text = append(text, k.Content.GetText().GetText())
		case *sessionv1.Block_Thinking:
			thought = append(thought, k.Thinking.GetText())
		case *sessionv1.Block_ToolUse:
			m.ToolCalls = append(m.ToolCalls, toolCall{e.call(k.ToolUse.GetProviderCallId()), "function", function{Name: k.ToolUse.GetTool(), Arguments: k.ToolUse.GetArgumentsJson()}})
		}
	}
	if len(text) > 0 {
		s := strings.Join(text, "")
		m.Content = &s
	}
	m.Reasoning = strings.Join(thought, "\n")
	return dialog.JSON(map[string]any{
		"id": e.id, "object": "chat.completion", "created": e.made, "model": e.model, "usage": usageOf(r.Usage),
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": finish(r.StopReason), "logprobs": nil}},
	})
}

// Fail returns the chunk of an error within the answer.
func (*Encoder) Fail(f modelapi.Failure, requestID string) []byte {
	return dialog.Data(nil, modelapi.OpenAI.Error(f, requestID))
}
