package openai

import (
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// conversation is that of r, with reasoning unless the level has none.
func (m *chat) conversation(r model.Request, l level) *wire.Conversation {
	return wire.NewConversation(r, func(b *sessionv1.Block) bool {
		_, ok := m.own(r.Model, b)
		return ok && l != none
	})
}

// body returns the whole request as JSON, with reasoning according to the level.
// Tools and messages are not left to the SDK: for ten thousand messages its reflection
// takes many times as long as this code.
func (m *chat) body(r model.Request, l level) ([]byte, error) {
	c := m.conversation(r, l)
	head, err := m.head(r).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	buf := make([]byte, 0, len(head)+c.Size())
	buf = append(buf, head[:len(head)-1]...)
	if buf, err = appendTools(buf, r.Tools); err != nil {
		return nil, err
	}
	buf = append(buf, `,"messages":[`...)
	if c.System != "" {
		buf = appendMessage(buf, "system", c.System)
	}
	start := c.LoopStart()
	for i, msg := range c.Messages {
		switch {
		case msg.Role != sessionv1.Role_ROLE_ASSISTANT:
			buf = appendUser(buf, c, msg.Blocks)
		case l == loop && i < start:
			buf = m.appendAssistant(buf, c, r, msg.Blocks, none)
		default:
			buf = m.appendAssistant(buf, c, r, msg.Blocks, l)
		}
	}
	return append(buf, "]}"...), nil
}

// head returns the request without its tools and messages.
func (m *chat) head(r model.Request) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{
		Model:           r.Model,
		StreamOptions:   sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
		ReasoningEffort: shared.ReasoningEffort(m.cfg.ReasoningEffort),
	}
	if r.Temperature != nil {
		p.Temperature = sdk.Float(*r.Temperature)
	}
	if r.TopP != nil {
		p.TopP = sdk.Float(*r.TopP)
	}
	p.SetExtraFields(m.extra(r))
	limit := max(m.cfg.MaxOutputTokens, 1)
	if r.MaxOutputTokens > 0 {
		limit = min(r.MaxOutputTokens, limit)
	}
	if m.cfg.LegacyMaxTokens {
		p.MaxTokens = sdk.Int(limit) // deprecated at OpenAI, and all that older compatible servers know
	} else {
		p.MaxCompletionTokens = sdk.Int(limit)
	}
	return p
}

func appendTools(buf []byte, tools []model.Tool) (_ []byte, err error) {
	if len(tools) == 0 {
		return buf, nil
	}
	buf = append(buf, `,"tools":[`...)
	for _, t := range tools {
		buf = wire.AppendString(append(wire.Next(buf), `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			buf = wire.AppendString(append(buf, `,"description":`...), t.Description)
		}
		if buf, err = t.AppendSchema(append(buf, `,"parameters":`...)); err != nil {
			return nil, err
		}
		if t.Strict {
			buf = append(buf, `,"strict":true`...)
		}
		buf = append(buf, "}}"...)
	}
	return append(buf, ']'), nil
}

// appendMessage writes a message that is a text.
func appendMessage(buf []byte, role, text string) []byte {
	buf = append(append(wire.Next(buf), `{"role":"`...), role...)
	buf = wire.AppendString(append(buf, `","content":`...), text)
	return append(buf, '}')
}

// appendAssistant writes a message of the model, with its reasoning according to the
// level.
func (m *chat) appendAssistant(buf []byte, c *wire.Conversation, r model.Request, blocks []*sessionv1.Block, l level) []byte {
	buf = append(wire.Next(buf), `{"role":"assistant"`...)
	var said []string
	calls := 0
	for _, b := range blocks {
		if t := b.GetContent().GetText(); t != nil {
			said = append(said, t.GetText())
		}
		if b.GetToolUse() != nil {
			calls++
		}
	}
	if len(said) > 0 {
		buf = wire.AppendString(append(buf, `,"content":`...), strings.Join(said, "\n\n"))
	}
	if l != none {
		buf = m.appendReasoning(buf, r, blocks, l == all && calls > 0)
	}
	if calls > 0 {
		buf = m.appendCalls(buf, c, r, blocks)
	}
	return append(buf, '}')
}

func (m *chat) appendCalls(buf []byte, c *wire.Conversation, r model.Request, blocks []*sessionv1.Block) []byte {
	buf = append(buf, `,"tool_calls":[`...)
	for _, b := range blocks {
		u := b.GetToolUse()
		if u == nil {
			continue
		}
		buf = wire.AppendString(append(wire.Next(buf), `{"type":"function","id":`...), c.ID(u.GetCallId()))
		buf = wire.AppendString(append(buf, `,"function":{"name":`...), u.GetTool())
		buf = wire.AppendString(append(buf, `,"arguments":`...), string(wire.Arguments(u.GetArgumentsJson())))
		buf = append(buf, '}')
		if o, _ := m.own(r.Model, b); o.Extra != nil {
			buf = append(append(buf, `,"extra_content":`...), o.Extra...)
		}
		buf = append(buf, '}')
	}
	return append(buf, ']')
}
