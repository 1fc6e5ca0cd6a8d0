package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// Arguments are a call's arguments: one JSON object.
type Arguments struct {
	// Raw is the text, as a tool decodes it.
	Raw json.RawMessage
	// Value is the same, decoded; its numbers are json.Number.
	Value map[string]any
}

// String returns the string under a name, or "" if there is none.
func (a Arguments) String(name string) string {
	s, _ := a.Value[name].(string)
	return s
}

// Plain returns arguments in their stored form: an empty text and null mean the
// empty object, and all other text stays as the model wrote it.
func Plain(text string) string {
	if t := strings.TrimSpace(text); t == "" || t == "null" {
		return "{}"
	}
	return text
}

// ParseArguments reads arguments as a model wrote them: one JSON object, in
// which no name occurs twice. Two readers could use different values of such a
// name, so that a person could approve another call than the one that runs. An
// empty text and null mean the empty object. The error is written for the
// model.
func ParseArguments(text string) (Arguments, error) {
	text = Plain(text)
	value, err := jsontext.Object(text)
	if err != nil {
		return Arguments{}, fmt.Errorf("the arguments are %w. Send one JSON object", err)
	}
	return Arguments{Raw: json.RawMessage(text), Value: value}, nil
}

// clip shortens a text for a message, at a character boundary.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
