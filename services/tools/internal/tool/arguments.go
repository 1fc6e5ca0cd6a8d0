package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// Arguments are a call's arguments: one JSON object.
type Arguments struct {
	// Raw is the text, as it is decoded by the tool.
	Raw json.RawMessage
	// Value is the same, decoded; its numbers are json.Number.
	Value map[string]any
}

// String returns the string under a name; empty when there is none.
func (a Arguments) String(name string) string {
	s, _ := a.Value[name].(string)
	return s
}

// ParseArguments reads arguments as a model wrote them: one JSON object, in
// which no name occurs twice, for two readers could take different ones, and a
// person would approve another call than the one that runs. Nothing at all is an
// empty object. The error is written for the model.
func ParseArguments(text string) (Arguments, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	value, err := jsontext.Object(text)
	if err != nil {
		return Arguments{}, fmt.Errorf("the arguments are %w. Send one JSON object", err)
	}
	return Arguments{Raw: json.RawMessage(text), Value: value}, nil
}

// clip cuts a text for a message, on a character's border.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
