package anthropic

import "encoding/json"

// request is a request in the API's form, without its messages.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int64     `json:"max_tokens"`
	System    []part    `json:"system,omitempty"`
	Thinking  *thinking `json:"thinking,omitempty"`
	Tools     []tool    `json:"tools,omitempty"`
	wishes

	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
}

type thinking struct {
	Type    string `json:"type"`
	Budget  int64  `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
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
