package anthropic

import (
	"encoding/base64"
	"encoding/json"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
)

// minBudget is the least thinking that the API accepts.
const minBudget = 1024

// opaque is the provider data of a thinking block. The text of thinking is in
// the block itself.
type opaque struct {
	Type      string `json:"type"` // thinking or redacted_thinking
	Model     string `json:"model,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

// own returns a function that reports whether a block is thinking that may be
// replayed to a model: its own, or from a log that does not name the model.
func (m *Model) own(modelName string) func(*sessionv1.Block) bool {
	return func(b *sessionv1.Block) bool {
		o, ok := m.opaque(b)
		return ok && (o.Model == "" || o.Model == modelName)
	}
}

func (m *Model) opaque(b *sessionv1.Block) (opaque, bool) {
	var o opaque
	d := b.GetProviderData()
	if b.GetThinking() == nil || d.GetProvider() != m.client.access.Provider || json.Unmarshal(d.GetData(), &o) != nil {
		return o, false
	}
	return o, o.Type == "thinking" && o.Signature != "" || o.Type == "redacted_thinking" && o.Data != ""
}

// params returns the request without its messages. The system prompt, the tools
// and the last message of the user each end a part that the provider caches.
func (m *Model) params(r model.Request, c *prompt.Conversation) request {
	p := request{Model: r.Model, MaxTokens: m.maxTokens(r), Tools: tools(r.Tools), Temperature: r.Temperature, TopP: r.TopP}
	p.Thinking = m.thinking(r, c, p.MaxTokens)
	p.wishes = wishesOf(r, m.limits.Adaptive)
	if c.System != "" {
		p.System = []part{{Type: "text", Text: &c.System, Cache: ephemeral}}
	}
	return p
}

func (m *Model) maxTokens(r model.Request) int64 {
	if r.MaxOutputTokens > 0 {
		return min(r.MaxOutputTokens, max(m.limits.MaxOutputTokens, 1))
	}
	return max(m.limits.MaxOutputTokens, 1)
}

// thinking converts the bound on thinking for the API. A budget must fit into
// the answer, and a turn that began without thinking must continue without.
func (m *Model) thinking(r model.Request, c *prompt.Conversation, maxTokens int64) *Thinking {
	if !m.limits.Adaptive && midTurnWithoutThinking(c) {
		return nil
	}
	return NewThinking(r.ThinkingTokens, maxTokens, m.limits.Adaptive)
}

// midTurnWithoutThinking reports whether the last message has results for an
// assistant message that did not begin with thinking.
func midTurnWithoutThinking(c *prompt.Conversation) bool {
	n := len(c.Messages)
	return n >= 2 && c.Messages[n-1].Blocks[0].GetToolResult() != nil &&
		c.Messages[n-2].Role == sessionv1.Role_ROLE_ASSISTANT && c.Messages[n-2].Blocks[0].GetThinking() == nil
}

func tools(offered []model.Tool) []tool {
	var out []tool
	for _, t := range offered {
		out = append(out, tool{Name: t.Name, Description: t.Description, Schema: t.Schema(), Strict: t.Strict})
	}
	if len(out) > 0 {
		out[len(out)-1].Cache = ephemeral
	}
	return out
}

func user(c *prompt.Conversation, blocks []*sessionv1.Block) []part {
	var out []part
	for _, b := range blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Content:
			out = append(out, content(k.Content))
		case *sessionv1.Block_ToolResult:
			out = append(out, result(c, k.ToolResult))
		}
	}
	return out
}

func result(c *prompt.Conversation, r *sessionv1.ToolResult) part {
	p := part{Type: "tool_result", ToolUse: c.ID(r.GetCallId()), IsError: prompt.IsError(r.GetOutcome())}
	if why := prompt.Explain(r.GetOutcome()); why != "" {
		p.Content = append(p.Content, text(why))
	}
	for _, piece := range r.GetContent() {
		if t := piece.GetText(); t != nil && !prompt.Blank(t.GetText()) || piece.GetText() == nil && piece.GetKind() != nil {
			p.Content = append(p.Content, content(piece))
		}
	}
	return p
}

// sent gives the blocks that the request's messages are made of.
func sent(c *prompt.Conversation) [][]*sessionv1.Block {
	out := make([][]*sessionv1.Block, len(c.Messages))
	for i, m := range c.Messages {
		out[i] = m.Blocks
	}
	return out
}

func content(c *commonv1.Content) part {
	switch k := c.GetKind().(type) {
	case *commonv1.Content_Image:
		return part{Type: "image", Source: base64Of(media.Canonical(k.Image.GetMediaType()), k.Image.GetData())}
	case *commonv1.Content_Document:
		return document(k.Document)
	}
	return text(c.GetText().GetText())
}

// document returns the block of a document. The API takes only PDFs and texts;
// of other documents the model learns only that they exist.
func document(d *commonv1.Media) part {
	p := part{Type: "document", Title: d.GetTitle()}
	switch {
	case media.Canonical(d.GetMediaType()) == media.PDF:
		p.Source = base64Of(media.PDF, d.GetData())
	case prompt.IsText(d):
		p.Source = &source{Type: "text", MediaType: "text/plain", Data: string(d.GetData())}
	default:
		return text(prompt.Describe(d))
	}
	return p
}

func text(s string) part { return part{Type: "text", Text: &s} }

func base64Of(mediaType string, data []byte) *source {
	return &source{Type: "base64", MediaType: mediaType, Data: base64.StdEncoding.EncodeToString(data)}
}
