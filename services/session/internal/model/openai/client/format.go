package client

import (
	"cmp"
	"encoding/json"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

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
