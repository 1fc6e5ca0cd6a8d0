package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
)

// conversation is that of r, with reasoning unless the level has none.
func (m *chat) conversation(r model.Request, l level) *prompt.Conversation {
	return prompt.New(r, func(b *sessionv1.Block) bool {
		_, ok := m.own(r.Model, b)
		return ok && l != none
	})
}

// body returns the whole request as JSON, with reasoning according to the level.
// Tools and messages are not left to encoding/json: for ten thousand messages its reflection
// takes many times as long as this code.
func (m *chat) body(r model.Request, l level) ([]byte, error) {
	c := m.conversation(r, l)
	head, err := json.Marshal(m.head(r))
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

// head is a request in the API's form, without its tools and messages.
type head struct {
	Model         string        `json:"model"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	Effort        string        `json:"reasoning_effort,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	MaxCompletion int64         `json:"max_completion_tokens,omitempty"`
	Max           int64         `json:"max_tokens,omitempty"` // deprecated at OpenAI, and all that older compatible servers know
	wishes
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func (m *chat) head(r model.Request) head {
	h := head{Model: r.Model, Stream: true, StreamOptions: streamOptions{true}, Effort: m.effort(r), Temperature: r.Temperature, TopP: r.TopP, wishes: wishesOf(r)}
	limit := max(m.cfg.MaxOutputTokens, 1)
	if r.MaxOutputTokens > 0 {
		limit = min(r.MaxOutputTokens, limit)
	}
	if m.cfg.LegacyMaxTokens {
		h.Max = limit
	} else {
		h.MaxCompletion = limit
	}
	return h
}

func appendTools(buf []byte, tools []model.Tool) (_ []byte, err error) {
	if len(tools) == 0 {
		return buf, nil
	}
	buf = append(buf, `,"tools":[`...)
	for _, t := range tools {
		buf = prompt.AppendString(append(prompt.Next(buf), `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			buf = prompt.AppendString(append(buf, `,"description":`...), t.Description)
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
	buf = append(append(prompt.Next(buf), `{"role":"`...), role...)
	buf = prompt.AppendString(append(buf, `","content":`...), text)
	return append(buf, '}')
}

// appendAssistant writes a message of the model, with its reasoning according to the
// level.
func (m *chat) appendAssistant(buf []byte, c *prompt.Conversation, r model.Request, blocks []*sessionv1.Block, l level) []byte {
	buf = append(prompt.Next(buf), `{"role":"assistant"`...)
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
		buf = prompt.AppendString(append(buf, `,"content":`...), strings.Join(said, "\n\n"))
	}
	if l != none {
		buf = m.appendReasoning(buf, r, blocks, l == all && calls > 0)
	}
	if calls > 0 {
		buf = m.appendCalls(buf, c, r, blocks)
	}
	return append(buf, '}')
}

func (m *chat) appendCalls(buf []byte, c *prompt.Conversation, r model.Request, blocks []*sessionv1.Block) []byte {
	buf = append(buf, `,"tool_calls":[`...)
	for _, b := range blocks {
		u := b.GetToolUse()
		if u == nil {
			continue
		}
		buf = prompt.AppendString(append(prompt.Next(buf), `{"type":"function","id":`...), c.ID(u.GetCallId()))
		buf = prompt.AppendString(append(buf, `,"function":{"name":`...), u.GetTool())
		buf = prompt.AppendString(append(buf, `,"arguments":`...), string(prompt.Arguments(u.GetArgumentsJson())))
		buf = append(buf, '}')
		if o, _ := m.own(r.Model, b); o.Extra != nil {
			buf = append(append(buf, `,"extra_content":`...), o.Extra...)
		}
		buf = append(buf, '}')
	}
	return append(buf, ']')
}
