package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// whole adds up the messages that a server sends in place of deltas: one whole
// answer, the answer so far again and again, or piece by piece.
type whole struct {
	text, thinking, refusal, reasoningContent, reasoning strings.Builder

	details []json.RawMessage
	calls   []piece
}

func (w *whole) add(m message) {
	grow(&w.text, m.Content.text)
	grow(&w.thinking, m.Content.thinking)
	grow(&w.refusal, string(m.Refusal))
	grow(&w.reasoningContent, string(m.ReasoningContent))
	grow(&w.reasoning, string(m.Reasoning))
	for i, d := range m.ReasoningDetails {
		if i >= len(w.details) || !bytes.Equal(d, w.details[i]) {
			w.details = append(w.details, d)
		}
	}
	for i, p := range m.ToolCalls {
		index := transport.Count(i)
		p.Index = &index
		if i < len(w.calls) && w.calls[i].extendedBy(p) {
			w.calls[i] = p
		} else {
			w.calls = append(w.calls, p)
		}
	}
}

// grow appends a piece, or what a text has more than the one so far.
func grow(b *strings.Builder, s string) {
	b.WriteString(strings.TrimPrefix(s, b.String()))
}

// extendedBy reports whether a later piece is the same call with all its arguments.
func (p *piece) extendedBy(later piece) bool {
	return p.ID == later.ID && p.Function.Name == later.Function.Name && strings.HasPrefix(string(later.Function.Arguments), string(p.Function.Arguments))
}

func (w *whole) message() message {
	return message{
		Content: content{text: w.text.String(), thinking: w.thinking.String()}, Refusal: text(w.refusal.String()),
		ReasoningContent: text(w.reasoningContent.String()), Reasoning: text(w.reasoning.String()),
		ReasoningDetails: w.details, ToolCalls: w.calls,
	}
}

// empty reports whether a delta brings nothing of the answer.
func (m *message) empty() bool {
	return m.Content == content{} && m.Refusal == "" && m.ReasoningContent == "" && m.Reasoning == "" && len(m.ReasoningDetails) == 0 && len(m.ToolCalls) == 0
}

// useMessage takes from the messages what no delta has brought: the answer, or
// its calls.
func (a *answer) useMessage() error {
	if a.message == nil {
		return nil
	}
	m := a.message.message()
	a.message = nil
	switch {
	case a.streamed && len(a.calls) > 0:
		return nil
	case a.streamed:
		m = message{ToolCalls: m.ToolCalls}
	}
	if err := a.delta(m); err != nil {
		return err
	}
	return a.pump()
}

// delta takes in the pieces of an answer.
func (a *answer) delta(d message) error {
	a.details = append(a.details, d.ReasoningDetails...)
	thought, field := string(d.ReasoningContent), "reasoning_content"
	if thought == "" && d.Reasoning != "" {
		thought, field = string(d.Reasoning), "reasoning"
	}
	if thought != "" {
		a.field = field
	}
	if err := a.addText(model.ThinkingStart, thought+d.Content.thinking); err != nil {
		return err
	}
	if err := a.addText(model.TextStart, d.Content.text); err != nil {
		return err
	}
	if d.Refusal != "" {
		a.refused = true
		if err := a.addText(model.TextStart, string(d.Refusal)); err != nil {
			return err
		}
	}
	for i := range d.ToolCalls {
		if err := a.addCallPiece(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}
