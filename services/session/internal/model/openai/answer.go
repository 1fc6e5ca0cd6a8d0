package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// answer adds up the pieces of a stream.
type answer struct {
	provider string
	emit     func(model.Delta) error

	id      string
	finish  string
	refused bool
	usage   *sdk.Usage
	blocks  []*sessionv1.Block

	text   *strings.Builder // the open block of text or thinking
	kind   model.DeltaKind  // what it started with
	calls  []*call
	active int    // the call whose turn it is
	late   string // text that came after calls
	bytes  int    // of all text, for estimates
}

// say appends to the open block of text or thinking, or opens one. What comes
// after the calls began is held back until they have ended.
func (a *answer) say(start model.DeltaKind, s string) error {
	if s == "" {
		return nil
	}
	a.bytes += len(s)
	if len(a.calls) > 0 {
		if start == model.TextStart {
			a.late += s
		}
		return nil
	}
	if a.text != nil && a.kind != start {
		if err := a.closeText(); err != nil {
			return err
		}
	}
	if a.text == nil {
		a.text, a.kind = &strings.Builder{}, start
		if err := a.emit(model.Delta{Kind: start, Block: len(a.blocks)}); err != nil {
			return err
		}
	}
	a.text.WriteString(s)
	return a.emit(model.Delta{Kind: start + 1, Block: len(a.blocks), Text: s})
}

// closeText ends the open block of text or thinking, if there is one.
func (a *answer) closeText() error {
	if a.text == nil {
		return nil
	}
	b := &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{
		Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: a.text.String()}},
	}}}
	if a.kind == model.ThinkingStart {
		b = &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: a.text.String()}}}
	}
	a.text = nil
	a.blocks = append(a.blocks, b)
	return a.emit(model.Delta{Kind: a.kind + 2, Block: len(a.blocks) - 1})
}

func toolUse(c *call, args string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{
		ProviderCallId: c.id, Tool: c.name, ArgumentsJson: args,
	}}}
}

// end closes what is open and gives the answer.
func (a *answer) end(req sdk.ChatCompletionRequest) (*model.Response, error) {
	if err := a.closeText(); err != nil {
		return nil, err
	}
	if err := a.closeCalls(); err != nil {
		return nil, err
	}
	stop := a.stopReason()
	late := a.late
	a.calls, a.active, a.late = nil, 0, ""
	if err := a.say(model.TextStart, late); err != nil {
		return nil, err
	}
	if err := a.closeText(); err != nil {
		return nil, err
	}
	return &model.Response{Blocks: a.blocks, StopReason: stop, Usage: a.used(req), ID: a.id}, nil
}

// stopReason maps the finish reason. With calls it is tool_use whatever the
// server says, unless its limit cut the answer.
func (a *answer) stopReason() string {
	switch {
	case a.finish == "length":
		return "max_tokens"
	case a.refused || a.finish == "content_filter":
		return "refusal"
	case len(a.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// used gives the usage. The server's prompt tokens include the cached ones; of
// a server that tells nothing, it is estimated at four bytes a token.
func (a *answer) used(req sdk.ChatCompletionRequest) *sessionv1.Usage {
	if a.usage == nil {
		prompt, err := json.Marshal(req)
		if err != nil {
			prompt = nil
		}
		for _, b := range a.blocks {
			a.bytes += len(b.GetToolUse().GetArgumentsJson())
		}
		return &sessionv1.Usage{InputTokens: int64(len(prompt)+3) / 4, OutputTokens: int64(a.bytes+3) / 4}
	}
	u := &sessionv1.Usage{InputTokens: int64(max(0, a.usage.PromptTokens)), OutputTokens: int64(max(0, a.usage.CompletionTokens))}
	if d := a.usage.PromptTokensDetails; d != nil {
		u.CacheReadTokens = max(0, min(int64(d.CachedTokens), u.InputTokens))
		u.InputTokens -= u.CacheReadTokens
	}
	if d := a.usage.CompletionTokensDetails; d != nil {
		u.ThinkingTokens = int64(max(0, d.ReasoningTokens))
	}
	return u
}
