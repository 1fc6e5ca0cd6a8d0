package verdict

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
)

// Schema is the schema of an agent's structured output. It is safe for
// concurrent use.
type Schema struct {
	text     string // compact
	compiled *schema.Schema
}

// Compile checks the text of a JSON Schema (2020-12 unless it says otherwise).
// For empty text or an empty object it returns nil: the agent has no output.
func Compile(text string) (*Schema, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no schema is a valid one
	}
	text, err := jsontext.Compact(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("output-schema is %w", err)
	case text == "{}":
		return nil, nil //nolint:nilnil // a schema that asks for nothing is none
	}
	compiled, err := schema.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("output-schema is %w", err)
	}
	return &Schema{text: text, compiled: compiled}, nil
}

// check returns the faults of an output, in words for the model.
func (s *Schema) check(output any) error { return s.compiled.Check("output", output) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
