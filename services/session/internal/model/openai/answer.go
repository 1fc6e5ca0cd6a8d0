package openai

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// answer assembles the pieces of a stream.
type answer struct {
	provider, model string
	emit            func(model.Delta) error
	watch           *transport.Watch
	limits          transport.Limits
	sent            int // bytes of the request

	id       string
	finish   string // in lower case
	message  *whole // what came in place of deltas
	streamed bool   // deltas brought a part of the answer
	refused  bool
	usage    usage
	field    string            // of the reasoning
	details  []json.RawMessage // pieces of reasoning details
	blocks   []*sessionv1.Block

	openText
	calls  []*call
	active int             // the call that is being emitted
	late   strings.Builder // text that came after calls
	bytes  int             // of all text, for estimates
}

// openText is the open block of text or thinking.
type openText struct {
	text *strings.Builder
	kind model.DeltaKind // what it started with
}

// addText appends to the open block of text or thinking, or opens one. Text that
// comes after the first call is held back until the calls have ended.
func (a *answer) addText(start model.DeltaKind, s string) error {
	if s == "" {
		return nil
	}
	if len(a.calls) > 0 {
		if start == model.TextStart {
			a.late.WriteString(s)
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
	a.bytes += len(s)
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
		if a.field != "" {
			b.ProviderData = a.keep(opaque{Field: a.field})
		}
	}
	a.text = nil
	a.blocks = append(a.blocks, b)
	return a.emit(model.Delta{Kind: a.kind + 2, Block: len(a.blocks) - 1, Data: b.GetProviderData()})
}

// toolUse returns the block of a call.
func (a *answer) toolUse(c *call, args string) *sessionv1.Block {
	b := &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{
		ProviderCallId: c.id, Tool: c.name, ArgumentsJson: args,
	}}}
	if c.extra != nil {
		b.ProviderData = a.keep(opaque{Extra: c.extra})
	}
	return b
}

// end closes open blocks and returns the answer.
func (a *answer) end() (*model.Response, error) {
	if err := a.useMessage(); err != nil {
		return nil, err
	}
	if err := a.closeText(); err != nil {
		return nil, err
	}
	if err := a.closeCalls(); err != nil {
		return nil, err
	}
	stop := a.stopReason()
	a.calls, a.active = nil, 0
	if err := a.addText(model.TextStart, a.late.String()); err != nil {
		return nil, err
	}
	if err := a.closeText(); err != nil {
		return nil, err
	}
	if err := a.keepDetails(); err != nil {
		return nil, err
	}
	r := &model.Response{Blocks: a.blocks, StopReason: stop, ID: a.id}
	r.Usage, r.Warning = a.used()
	return r, nil
}

// keepDetails stores the reasoning details in the last block of thinking, or in
// an empty block of their own.
func (a *answer) keepDetails() error {
	details := mergeDetails(a.details)
	if len(details) == 0 {
		return nil
	}
	for _, b := range slices.Backward(a.blocks) {
		if b.GetThinking() != nil {
			b.ProviderData = a.keep(opaque{Field: a.field, Details: details})
			return nil
		}
	}
	if err := a.emit(model.Delta{Kind: model.ThinkingStart, Block: len(a.blocks)}); err != nil {
		return err
	}
	a.blocks = append(a.blocks, &sessionv1.Block{
		Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{}}, ProviderData: a.keep(opaque{Details: details}),
	})
	return a.emit(model.Delta{Kind: model.ThinkingEnd, Block: len(a.blocks) - 1, Data: a.blocks[len(a.blocks)-1].ProviderData})
}

// stopReason maps the finish reason. With calls it is tool_use, whatever the
// server says, unless its limit cut the answer.
func (a *answer) stopReason() string {
	switch {
	case slices.Contains([]string{"length", "max_tokens", "max_output_tokens", "model_length"}, a.finish):
		return "max_tokens"
	case a.refused, slices.Contains([]string{"content_filter", "refusal", "safety", "sensitive"}, a.finish):
		return "refusal"
	case len(a.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// used returns the usage. The server's prompt tokens include the cached ones.
func (a *answer) used() (u *sessionv1.Usage, warning string) {
	t := a.usage
	prompt, completion, reasoning := int64(max(0, t.Prompt)), int64(max(0, t.Completion)), int64(max(0, t.CompletionDetails.Reasoning))
	if reasoning > completion || reasoning > 0 && t.Total > 0 && int64(t.Total)-prompt-reasoning == completion {
		completion += min(reasoning, math.MaxInt64-completion) // some servers do not include it in the rest
	}
	cached := max(0, min(int64(t.Cached), prompt))
	u = &sessionv1.Usage{InputTokens: prompt - cached, CacheReadTokens: cached, OutputTokens: completion, ThinkingTokens: reasoning}
	for _, b := range a.blocks {
		a.bytes += len(b.GetToolUse().GetArgumentsJson())
	}
	return u, a.limits.Correct(u, a.sent, a.bytes)
}
