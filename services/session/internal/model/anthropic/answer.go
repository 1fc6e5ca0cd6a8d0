package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// answer assembles the events of a stream.
type answer struct {
	provider, model string
	emit            func(model.Delta) error
	watch           *transport.Watch
	limits          transport.Limits
	sent            int // bytes of the request

	id     string
	stop   string
	usage  sessionv1.Usage
	blocks []*sessionv1.Block
	open   *block
	bytes  int // of the whole answer, for estimates
}

// block is the content block that is being streamed.
type block struct {
	index   transport.Count // the provider's
	kind    string
	text    strings.Builder
	started bool // the start was emitted
	opaque  opaque
	proof   strings.Builder // the signature
	id      string
	tool    string
	input   string // the input at the start of a tool use
}

// messageDelta takes the stop reason and the final usage.
func (a *answer) messageDelta(e event) {
	if e.Delta.StopReason != "" {
		a.stop = stopReason(e.Delta.StopReason)
		a.watch.Complete()
	}
	a.count(e.Usage)
}

// count merges a later usage.
func (a *answer) count(u usage) {
	later := func(dst *int64, v transport.Count) { (*transport.Count)(dst).Later(v) }
	later(&a.usage.InputTokens, u.Input)
	later(&a.usage.OutputTokens, u.Output)
	later(&a.usage.CacheReadTokens, u.CacheRead)
	later(&a.usage.CacheWriteTokens, u.CacheWrite)
	later(&a.usage.ThinkingTokens, u.Details.Thinking)
}

// stopReason maps the API's reasons to ours. We use no server tools, so
// pause_turn is an end. A full context cuts an answer like its own limit.
func stopReason(s string) string {
	switch s {
	case "end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal":
		return s
	case "model_context_window_exceeded":
		return "max_tokens"
	}
	return "end_turn"
}

func (a *answer) start(index transport.Count, b contentBlock) error {
	if a.open != nil {
		return a.malformed("a block began inside another")
	}
	a.open = &block{index: index, kind: b.Type}
	switch b.Type {
	case "text":
		return a.grow(model.TextStart, b.Text)
	case "thinking":
		a.open.opaque = opaque{Type: b.Type}
		a.open.proof.WriteString(b.Signature)
		return a.first(model.Delta{Kind: model.ThinkingStart}, b.Thinking)
	case "redacted_thinking":
		a.open.opaque = opaque{Type: b.Type, Data: b.Data}
		return a.first(model.Delta{Kind: model.ThinkingStart}, "")
	case "tool_use":
		a.open.id, a.open.tool = b.ID, b.Name
		if raw := strings.ToValidUTF8(string(b.Input), "\ufffd"); raw != "{}" && raw != "null" {
			a.open.input = raw
		}
		return a.first(model.Delta{Kind: model.ToolUseStart, ToolName: b.Name, ProviderCallID: b.ID}, "")
	}
	return nil // a kind of block that we did not request
}

// first emits the start of the open block and its first text.
func (a *answer) first(d model.Delta, text string) error {
	d.Block = len(a.blocks)
	a.open.started = true
	if err := a.emit(d); err != nil {
		return err
	}
	return a.grow(d.Kind, text)
}

// grow appends to the open block. A text block starts with its first text, so
// that none is empty.
func (a *answer) grow(start model.DeltaKind, text string) error {
	if text == "" {
		return nil
	}
	if !a.open.started {
		return a.first(model.Delta{Kind: start}, text)
	}
	a.open.text.WriteString(text)
	a.bytes += len(text)
	return a.emit(model.Delta{Kind: start + 1, Block: len(a.blocks), Text: text})
}

func (a *answer) delta(index transport.Count, d delta) error {
	if a.open == nil || a.open.index != index {
		return a.malformed("a piece belongs to no open block")
	}
	switch {
	case d.Type == "text_delta" && a.open.kind == "text":
		return a.grow(model.TextStart, d.Text)
	case d.Type == "thinking_delta" && a.open.kind == "thinking":
		return a.grow(model.ThinkingStart, d.Thinking)
	case d.Type == "signature_delta" && a.open.kind == "thinking":
		a.open.proof.WriteString(d.Signature)
	case d.Type == "input_json_delta" && a.open.kind == "tool_use":
		return a.grow(model.ToolUseStart, d.PartialJSON)
	}
	return nil
}

func (a *answer) end(index transport.Count) error {
	if a.open == nil || a.open.index != index {
		return a.malformed("a block ended that was not open")
	}
	b := a.open
	if b.kind == "tool_use" && b.text.Len() == 0 && b.input != "" { // Some servers send the whole input at once.
		if err := a.grow(model.ToolUseStart, b.input); err != nil {
			return err
		}
	}
	a.open = nil
	if !b.started {
		return nil
	}
	block, start := a.finished(b)
	end := model.Delta{Kind: start + 2, Block: len(a.blocks), Data: block.GetProviderData()}
	a.blocks = append(a.blocks, block)
	return a.emit(end)
}

// finished returns our block of b and the kind of piece that starts it.
func (a *answer) finished(b *block) (*sessionv1.Block, model.DeltaKind) {
	text := b.text.String()
	switch b.kind {
	case "text":
		return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{
			Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}},
		}}}, model.TextStart
	case "tool_use":
		if text == "" {
			text = "{}"
		}
		return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{
			ProviderCallId: b.id, Tool: b.tool, ArgumentsJson: text,
		}}}, model.ToolUseStart
	}
	thinking := &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: text}}}
	b.opaque.Model, b.opaque.Signature = a.model, b.proof.String()
	if data, err := json.Marshal(b.opaque); err == nil {
		thinking.ProviderData = &sessionv1.ProviderData{Provider: a.provider, Data: data}
	}
	return thinking, model.ThinkingStart
}

// response returns the answer. An answer with calls ends with tool_use,
// whatever the server says, unless its limit cut it.
func (a *answer) response() *model.Response {
	calls := slices.ContainsFunc(a.blocks, func(b *sessionv1.Block) bool { return b.GetToolUse() != nil })
	switch {
	case calls && a.stop == "end_turn":
		a.stop = "tool_use"
	case !calls && a.stop == "tool_use":
		a.stop = "end_turn"
	}
	warning := a.limits.Correct(&a.usage, a.sent, a.bytes)
	return &model.Response{Blocks: a.blocks, StopReason: a.stop, Usage: &a.usage, ID: a.id, Warning: warning}
}
