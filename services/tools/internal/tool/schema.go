package tool

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// maxFaults is how many faults of the arguments one message names.
const maxFaults = 10

// Schema checks arguments. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// noLoader refuses every reference out of a schema: a provider's schema shall
// not make this service read files or addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a reference to another document (%s) is not followed", url)
}

// CompileSchema compiles the JSON Schema of a tool's arguments. The name is for
// messages only.
func CompileSchema(name, text string) (*Schema, error) {
	doc, err := jsontext.Object(text)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s is %w", name, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	url := "fairlead:///tools/" + name
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", name, err)
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", name, err)
	}
	return &Schema{compiled: compiled}, nil
}

// Check says what is wrong with arguments, in words for the model.
func (s *Schema) Check(args Arguments) error {
	err := s.compiled.Validate(any(args.Value))
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("the arguments could not be checked: %s", clip(err.Error(), 300))
	}
	faults := leaves(invalid.DetailedOutput(), map[string]bool{})
	sort.Strings(faults)
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults], "and more")
	}
	return errors.New("the arguments do not fit the tool's input schema: " + strings.Join(faults, "; "))
}

// leaves lists what a validation found, each fault once.
func leaves(unit *jsonschema.OutputUnit, seen map[string]bool) []string {
	var faults []string
	if unit.Error != nil && len(unit.Errors) == 0 {
		where := strings.TrimPrefix(unit.InstanceLocation, "/")
		text := clip(unit.Error.String(), 200)
		if where != "" {
			text = clip(where, 100) + ": " + text
		}
		if !seen[text] {
			seen[text] = true
			faults = append(faults, text)
		}
	}
	for i := range unit.Errors {
		faults = append(faults, leaves(&unit.Errors[i], seen)...)
	}
	return faults
}
