// Package client has what both of OpenAI's APIs share: the request, and the schema of an answer.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Post sends a request once, with a key as a bearer token. An empty base URL is OpenAI's own.
func Post(watched context.Context, w *transport.Watch, base, key string, body []byte, path ...string) (*http.Response, error) {
	address, err := transport.Address(cmp.Or(base, DefaultBaseURL), path...)
	if err != nil {
		return nil, err
	}
	return w.Post(watched, address, http.Header{"Accept": {"text/event-stream"}}, transport.Bearer(key), body)
}

// Format is the schema of an answer in both APIs, which require a name.
type Format struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Strict      bool            `json:"strict,omitempty"`
}

// FormatOf returns the schema that a request asks for.
func FormatOf(f model.Format) Format {
	return Format{Name: cmp.Or(f.Name, "answer"), Description: f.Description, Schema: f.Schema, Strict: f.Strict}
}

// Effort returns the word of both APIs for how much a model thinks.
func Effort(word string) string {
	if word == "max" { // of Anthropic's API
		return "high"
	}
	return word
}

// Choice returns the word for a choice of tools; nil for what both APIs do unasked, and for a tool by its name, whose
// form differs.
func Choice(c model.ToolChoice) any {
	switch c.Mode {
	case model.ToolNone:
		return "none"
	case model.ToolAny:
		return "required"
	case model.ToolNamed, model.ToolAuto:
	}
	return nil
}

// Parallel returns false for a choice of one call at most; nil for what both APIs do unasked.
func Parallel(c model.ToolChoice) *bool {
	if c.Single {
		return new(bool)
	}
	return nil
}
