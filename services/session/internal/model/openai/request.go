package openai

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// request is the SDK's request, with messages that may have additional fields.
type request struct {
	sdk.ChatCompletionRequest
	Messages []any `json:"messages"`
}

// assistantMessage is a message of the model.
type assistantMessage struct {
	Role             string            `json:"role"`
	Content          string            `json:"content,omitempty"`
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	ToolCalls        []toolCall        `json:"tool_calls,omitempty"`
}

type toolCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function sdk.FunctionCall `json:"function"`
	Extra    json.RawMessage  `json:"extra_content,omitempty"`
}

// conversation is that of r, with reasoning unless the level has none.
func (m *Model) conversation(r model.Request, l level) *wire.Conversation {
	return wire.NewConversation(r, func(b *sessionv1.Block) bool {
		_, ok := m.own(r.Model, b)
		return ok && l != none
	})
}

// request returns the request, with reasoning according to the level.
func (m *Model) request(r model.Request, l level) request {
	c := m.conversation(r, l)
	req := request{ChatCompletionRequest: sdk.ChatCompletionRequest{
		Model: r.Model, Stream: true,
		StreamOptions:   &sdk.StreamOptions{IncludeUsage: true},
		ReasoningEffort: m.cfg.ReasoningEffort,
	}}
	limit := max(m.cfg.MaxOutputTokens, 1)
	if r.MaxOutputTokens > 0 {
		limit = min(r.MaxOutputTokens, limit)
	}
	if m.cfg.LegacyMaxTokens {
		req.MaxTokens = int(limit) //nolint:staticcheck // deprecated at OpenAI, and all that older compatible servers know
	} else {
		req.MaxCompletionTokens = int(limit)
	}
	for _, t := range r.Tools {
		schema := t.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		req.Tools = append(req.Tools, sdk.Tool{Type: sdk.ToolTypeFunction, Function: &sdk.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: schema,
		}})
	}
	if c.System != "" {
		req.Messages = append(req.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleSystem, Content: c.System})
	}
	start := loopStart(c)
	for i, msg := range c.Messages {
		if msg.Role != sessionv1.Role_ROLE_ASSISTANT {
			for _, u := range user(c, msg.Blocks) {
				req.Messages = append(req.Messages, u)
			}
			continue
		}
		a := m.assistant(c, r, msg.Blocks)
		if l == all || l == loop && i >= start {
			m.reason(&a, r, msg.Blocks, l)
		}
		req.Messages = append(req.Messages, a)
	}
	return req
}

func (m *Model) assistant(c *wire.Conversation, r model.Request, blocks []*sessionv1.Block) assistantMessage {
	msg := assistantMessage{Role: sdk.ChatMessageRoleAssistant}
	var said []string
	for _, b := range blocks {
		if t := b.GetContent().GetText(); t != nil {
			said = append(said, t.GetText())
		}
		if u := b.GetToolUse(); u != nil {
			o, _ := m.own(r.Model, b)
			msg.ToolCalls = append(msg.ToolCalls, toolCall{
				ID: c.ID(u.GetCallId()), Type: string(sdk.ToolTypeFunction), Extra: o.Extra,
				Function: sdk.FunctionCall{Name: u.GetTool(), Arguments: string(wire.Arguments(u.GetArgumentsJson()))},
			})
		}
	}
	msg.Content = strings.Join(said, "\n\n")
	return msg
}

// user returns a tool message for each result, and then a user message with
// everything else: the user's words, and the parts of results that are not
// text.
func user(c *wire.Conversation, blocks []*sessionv1.Block) []sdk.ChatCompletionMessage {
	var out []sdk.ChatCompletionMessage
	var parts []sdk.ChatMessagePart
	for _, b := range blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_ToolResult:
			text, shown := result(k.ToolResult)
			out = append(out, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleTool, ToolCallID: c.ID(k.ToolResult.GetCallId()), Content: text})
			parts = append(parts, shown...)
		case *sessionv1.Block_Content:
			parts = append(parts, part(k.Content))
		}
	}
	if len(parts) == 0 {
		return out
	}
	return append(out, userMessage(parts))
}

// sent gives the blocks that the request's messages of the user and of tools are made of.
func sent(c *wire.Conversation) (out [][]*sessionv1.Block) {
	if c.System != "" {
		out = append(out, nil)
	}
	for _, m := range c.Messages {
		if m.Role == sessionv1.Role_ROLE_ASSISTANT {
			out = append(out, nil)
			continue
		}
		var parts []*sessionv1.Block
		for i, b := range m.Blocks {
			n := 1
			if r := b.GetToolResult(); r != nil {
				_, shown := result(r)
				out, n = append(out, m.Blocks[i:i+1]), len(shown)
			}
			parts = append(parts, slices.Repeat([]*sessionv1.Block{b}, n)...)
		}
		if len(parts) > 0 {
			out = append(out, parts)
		}
	}
	return out
}

// userMessage returns a user message. Text alone is sent as a plain string, which
// every server understands.
func userMessage(parts []sdk.ChatMessagePart) sdk.ChatCompletionMessage {
	msg := sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleUser}
	var texts []string
	for _, p := range parts {
		if p.Type != sdk.ChatMessagePartTypeText {
			msg.MultiContent = parts
			return msg
		}
		texts = append(texts, p.Text)
	}
	msg.Content = strings.Join(texts, "\n\n")
	return msg
}

// result returns a result as text, and its images, which go into a user message
// because tool messages hold only text.
func result(r *sessionv1.ToolResult) (string, []sdk.ChatMessagePart) {
	var lines []string
	var shown []sdk.ChatMessagePart
	if why := wire.Explain(r.GetOutcome()); why != "" {
		lines = append(lines, why)
	} else if wire.IsError(r.GetOutcome()) {
		lines = append(lines, "The tool reports an error:")
	}
	for _, piece := range r.GetContent() {
		p := part(piece)
		switch {
		case p.Type != sdk.ChatMessagePartTypeText:
			lines = append(lines, "[an image, shown in the next message]")
			shown = append(shown, p)
		case !wire.Blank(p.Text):
			lines = append(lines, p.Text)
		}
	}
	if len(lines) == 0 {
		return "(no output)", shown
	}
	return strings.Join(lines, "\n"), shown
}

func part(c *commonv1.Content) sdk.ChatMessagePart {
	text := c.GetText().GetText()
	switch k := c.GetKind().(type) {
	case *commonv1.Content_Image:
		return sdk.ChatMessagePart{Type: sdk.ChatMessagePartTypeImageURL, ImageURL: &sdk.ChatMessageImageURL{
			URL: "data:" + media.Canonical(k.Image.GetMediaType()) + ";base64," + base64.StdEncoding.EncodeToString(k.Image.GetData()),
		}}
	case *commonv1.Content_Document:
		text = wire.Describe(k.Document)
		if wire.IsText(k.Document) {
			text = strings.TrimSpace(k.Document.GetTitle() + "\n" + string(k.Document.GetData()))
		}
	}
	return sdk.ChatMessagePart{Type: sdk.ChatMessagePartTypeText, Text: text}
}
