package anthropic

import "encoding/json"

// request is a request in the API's form, without its messages.
type request struct {
	Model     string    `json:"model,omitempty"` // unless a platform's address names it
	MaxTokens int64     `json:"max_tokens"`
	System    []part    `json:"system,omitempty"`
	Thinking  *Thinking `json:"thinking,omitempty"`
	Tools     []tool    `json:"tools,omitempty"`
	wishes

	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
}

// Thinking is the field of a request that says how much the model thinks.
type Thinking struct {
	Type    string `json:"type"`
	Budget  int64  `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

// NewThinking returns the field for a bound on the thinking and on the whole answer: as much as the model decides
// within both, or a budget. It is nil where there is no room for thinking.
func NewThinking(tokens, maxTokens int64, adaptive bool) *Thinking {
	switch {
	case tokens <= 0:
		return nil
	case adaptive:
		return &Thinking{Type: "adaptive", Display: "summarized"}
	case maxTokens <= minBudget:
		return nil
	}
	return &Thinking{Type: "enabled", Budget: max(minBudget, min(tokens, maxTokens-1))}
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict,omitempty"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

// userMessage is a message of the user.
type userMessage struct {
	Role    string `json:"role"`
	Content []part `json:"content"`
}

// part is a block of a message: a text, an image, a document or a tool's result.
type part struct {
	Type    string  `json:"type"`
	Text    *string `json:"text,omitempty"`
	Source  *source `json:"source,omitempty"`
	Title   string  `json:"title,omitempty"`
	ToolUse string  `json:"tool_use_id,omitempty"`
	IsError bool    `json:"is_error,omitempty"`
	Content []part  `json:"content,omitempty"`
	Cache   *cache  `json:"cache_control,omitempty"`
}

// source has the data of an image or a document.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// cache marks the end of a part that the provider caches.
type cache struct {
	Type string `json:"type"`
}

var ephemeral = &cache{Type: "ephemeral"}
