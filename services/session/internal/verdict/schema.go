package verdict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// maxFaults is how many faults of an output one message names.
const maxFaults = 10

// Schema is what an agent's structured output keeps to. It is safe for
// concurrent use.
type Schema struct {
	text     string // compact
	compiled *jsonschema.Schema
}

// noLoader refuses every reference out of a schema: a configuration shall not
// make this service read files or addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a reference to another document (%s) is not followed", url)
}

// Compile checks the text of a JSON Schema (2020-12 unless it says otherwise).
// Empty text and an empty object give nil: the agent owes no output.
func Compile(text string) (*Schema, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no schema is a valid one
	}
	doc, err := jsontext.Object(text)
	if err != nil {
		return nil, fmt.Errorf("output-schema is %w", err)
	}
	if len(doc) == 0 {
		return nil, nil //nolint:nilnil // no schema is a valid one
	}
	if text, err = jsontext.Compact(text); err != nil {
		return nil, fmt.Errorf("output-schema is %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	const url = "fairlead:///output"
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("output-schema: %w", err)
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("output-schema: %w", err)
	}
	return &Schema{text: text, compiled: compiled}, nil
}

// check says what is wrong with an output, in words for the model.
func (s *Schema) check(output any) error {
	err := s.compiled.Validate(output)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	faults := leaves(invalid.DetailedOutput())
	slices.Sort(faults)
	faults = slices.Compact(faults)
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults], "and more")
	}
	return errors.New("output does not keep to its schema: " + strings.Join(faults, "; "))
}

// leaves lists what a validation found.
func leaves(unit *jsonschema.OutputUnit) []string {
	var faults []string
	if unit.Error != nil && len(unit.Errors) == 0 {
		where := "output" + strings.ReplaceAll(unit.InstanceLocation, "/", ".")
		faults = append(faults, clip(where, 100)+": "+clip(unit.Error.String(), 200))
	}
	for i := range unit.Errors {
		faults = append(faults, leaves(&unit.Errors[i])...)
	}
	return faults
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
