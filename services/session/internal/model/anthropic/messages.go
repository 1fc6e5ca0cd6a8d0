package anthropic

import (
	"encoding/json"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
)

// body returns the whole request as JSON. Only the messages are not
// left to encoding/json: for ten thousand of them its reflection takes many times
// as long as this code.
func (m *Model) body(r model.Request, c *prompt.Conversation) ([]byte, error) {
	p := m.params(r, c)
	platform := m.client.access.Platform
	if platform != "" {
		p.Model = "" // the address names it
	}
	head, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	buf := make([]byte, 0, len(head)+sizeOf(c))
	buf = append(buf, '{')
	if platform != Bedrock { // whose address says that it streams
		buf = append(buf, `"stream":true,`...)
	}
	if v := m.client.version; v != "" {
		buf = append(buf, `"anthropic_version":"`+v+`",`...)
	}
	buf = append(buf, head[1:len(head)-1]...)
	buf = append(buf, `,"messages":`...)
	if buf, err = m.appendMessages(buf, c); err != nil {
		return nil, fmt.Errorf("write the conversation: %w", err)
	}
	return append(buf, '}'), nil
}

// sizeOf returns about the length of the messages in JSON.
func sizeOf(c *prompt.Conversation) (n int) {
	for _, msg := range c.Messages {
		n += 64
		for _, b := range msg.Blocks {
			n += 128 + len(b.GetContent().GetText().GetText()) + len(b.GetToolUse().GetArgumentsJson())
			n += len(b.GetThinking().GetText()) + len(b.GetProviderData().GetData())
			for _, piece := range b.GetToolResult().GetContent() {
				n += len(piece.GetText().GetText())
			}
		}
	}
	return n + n/16
}

// appendMessages writes the messages of c. The last one of the user has the mark
// of the cached part: the next request begins with everything before it.
func (m *Model) appendMessages(buf []byte, c *prompt.Conversation) (_ []byte, err error) {
	buf = append(buf, '[')
	last := lastUser(c)
	for i, msg := range c.Messages {
		if i > 0 {
			buf = append(buf, ',')
		}
		if i == last {
			blocks := user(c, msg.Blocks)
			blocks[len(blocks)-1].Cache = ephemeral
			buf, err = appendMarshaled(buf, userMessage{Role: "user", Content: blocks})
		} else {
			buf, err = m.appendMessage(buf, c, msg)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(buf, ']'), nil
}

func lastUser(c *prompt.Conversation) int {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		if c.Messages[i].Role != sessionv1.Role_ROLE_ASSISTANT {
			return i
		}
	}
	return -1
}

func (m *Model) appendMessage(buf []byte, c *prompt.Conversation, msg prompt.Message) (_ []byte, err error) {
	blocks := &list{buf: append(buf, `{"content":[`...)}
	role := `],"role":"user"}`
	if msg.Role == sessionv1.Role_ROLE_ASSISTANT {
		role = `],"role":"assistant"}`
		m.appendAssistant(blocks, c, msg.Blocks)
	} else if err := appendUser(blocks, c, msg.Blocks); err != nil {
		return nil, err
	}
	return append(blocks.buf, role...), nil
}

// list is a JSON list in the making.
type list struct {
	buf  []byte
	some bool
}

// next begins an element.
func (l *list) next(begin string) {
	if l.some {
		l.buf = append(l.buf, ',')
	}
	l.some = true
	l.buf = append(l.buf, begin...)
}

func (l *list) text(s string) {
	l.next(`{"text":`)
	l.buf = append(prompt.AppendString(l.buf, s), `,"type":"text"}`...)
}

func (l *list) marshaled(b part) (err error) {
	l.next("")
	l.buf, err = appendMarshaled(l.buf, b)
	return err
}

func appendMarshaled(buf []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(buf, b...), err
}

// appendAssistant writes the blocks of an assistant message, thinking first.
func (m *Model) appendAssistant(l *list, c *prompt.Conversation, blocks []*sessionv1.Block) {
	for _, b := range blocks {
		if b.GetThinking() != nil {
			m.appendThinking(l, b)
		}
	}
	for _, b := range blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Content:
			if t := k.Content.GetText(); t != nil {
				l.text(t.GetText())
			}
		case *sessionv1.Block_ToolUse:
			l.next(`{"id":`)
			l.buf = append(prompt.AppendString(l.buf, c.ID(k.ToolUse.GetCallId())), `,"input":`...)
			l.buf = append(append(l.buf, prompt.Arguments(k.ToolUse.GetArgumentsJson())...), `,"name":`...)
			l.buf = append(prompt.AppendString(l.buf, k.ToolUse.GetTool()), `,"type":"tool_use"}`...)
		}
	}
}

func (m *Model) appendThinking(l *list, b *sessionv1.Block) {
	o, _ := m.opaque(b) // a Conversation has only usable blocks
	if o.Type == "redacted_thinking" {
		l.next(`{"data":`)
		l.buf = append(prompt.AppendString(l.buf, o.Data), `,"type":"redacted_thinking"}`...)
		return
	}
	l.next(`{"signature":`)
	l.buf = append(prompt.AppendString(l.buf, o.Signature), `,"thinking":`...)
	l.buf = append(prompt.AppendString(l.buf, b.GetThinking().GetText()), `,"type":"thinking"}`...)
}

// appendUser writes the blocks of a user's message. Images and documents are
// few and large; encoding/json writes them.
func appendUser(l *list, c *prompt.Conversation, blocks []*sessionv1.Block) error {
	for _, b := range blocks {
		var err error
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Content:
			if t := k.Content.GetText(); t != nil {
				l.text(t.GetText())
			} else {
				err = l.marshaled(content(k.Content))
			}
		case *sessionv1.Block_ToolResult:
			if onlyText(k.ToolResult.GetContent()) {
				appendResult(l, c, k.ToolResult)
			} else {
				err = l.marshaled(result(c, k.ToolResult))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func onlyText(pieces []*commonv1.Content) bool {
	for _, piece := range pieces {
		if piece.GetText() == nil && piece.GetKind() != nil {
			return false
		}
	}
	return true
}

func appendResult(l *list, c *prompt.Conversation, r *sessionv1.ToolResult) {
	l.next(`{"tool_use_id":`)
	l.buf = prompt.AppendString(l.buf, c.ID(r.GetCallId()))
	if prompt.IsError(r.GetOutcome()) {
		l.buf = append(l.buf, `,"is_error":true`...)
	}
	texts := list{buf: append(l.buf, `,"content":[`...)}
	if why := prompt.Explain(r.GetOutcome()); why != "" {
		texts.text(why)
	}
	for _, piece := range r.GetContent() {
		if s := piece.GetText().GetText(); !prompt.Blank(s) {
			texts.text(s)
		}
	}
	if texts.some { // otherwise there is no content
		l.buf = append(texts.buf, ']')
	}
	l.buf = append(l.buf, `,"type":"tool_result"}`...)
}
