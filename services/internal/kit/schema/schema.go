// Package schema checks JSON that a model wrote: the arguments of a call, and
// structured output. The arguments of every tool are checked here, whichever
// service or client runs the tool. The errors are written for the model.
package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

const (
	// maxFaults is how many faults one message names.
	maxFaults = 10
	// maxSteps bounds the work of one check. A short schema whose parts refer to
	// each other can require more steps than any machine can make.
	maxSteps = 100_000
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema

	mu    sync.Mutex
	steps int // of the current check

	patterns int // the size of the compiled patterns
}

// noLoader refuses every reference out of a schema: a schema must not make a
// service read files or addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a reference to another document (%s) is not followed", url)
}

// Compile compiles the text of a JSON Schema, an object, 2020-12 unless it says
// otherwise. The error completes the sentence "the schema is …".
func Compile(text string) (*Schema, error) {
	doc, err := jsontext.Object(text)
	if err != nil {
		return nil, err
	}
	return compile(doc)
}

func compile(doc map[string]any) (*Schema, error) {
	s := &Schema{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.pattern)
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "fairlead:///steps", Compile: s.count})
	c.AssertVocabs()
	const url = "fairlead:///schema"
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("not valid: %w", err)
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("not valid: %s", problem(err))
	}
	s.compiled = compiled
	return s, nil
}

// problem says in one line why a schema does not compile.
func problem(err error) string {
	var meta *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if errors.As(err, &meta) && errors.As(meta.Err, &invalid) {
		return strings.Join(list("", invalid), "; ")
	}
	return clip(err.Error(), 300)
}

// errSteps ends a check that takes too long.
var errSteps = errors.New("too many steps")

// count makes each part of the schema count how often it is applied. The counter
// replaces the part's format, the first keyword that runs code: a format is an
// annotation in every draft, as 2020-12 defines it.
func (s *Schema) count(c *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
	part := c.Enqueue(nil) // the part that is being compiled
	part.Format = &jsonschema.Format{Validate: func(any) error {
		if s.steps++; s.steps > maxSteps {
			return errSteps
		}
		return nil
	}}
	return nil, nil //nolint:nilnil // a vocabulary without an extension of its own
}

// CheckArguments returns the faults of the arguments of a call.
func (s *Schema) CheckArguments(args Arguments) error {
	if faults := s.faults("", args.Value); len(faults) > 0 {
		return errors.New("the arguments do not fit the tool's input schema: " + strings.Join(faults, "; "))
	}
	return nil
}

// Check returns the faults of a value that jsontext has read. They refer to the
// value by the given name.
func (s *Schema) Check(name string, value any) error {
	if faults := s.faults(name, value); len(faults) > 0 {
		return errors.New(name + " does not keep to its schema: " + strings.Join(faults, "; "))
	}
	return nil
}

// faults lists the faults of a value.
func (s *Schema) faults(name string, value any) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = 0
	err := s.compiled.Validate(value)
	if s.steps > maxSteps {
		return []string{"the check takes too many steps. Send less at once"}
	}
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &invalid):
		return []string{clip(err.Error(), 300)}
	}
	return list(name, invalid)
}

// list lists the faults that a validation found, without duplicates.
func list(name string, invalid *jsonschema.ValidationError) []string {
	faults := leaves(name, invalid.DetailedOutput())
	slices.Sort(faults)
	faults = slices.Compact(faults)
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults], "and more")
	}
	return faults
}

// leaves lists the faults that a validation found.
func leaves(name string, unit *jsonschema.OutputUnit) []string {
	var faults []string
	if unit.Error != nil && len(unit.Errors) == 0 {
		text := clip(fault(unit.Error.Kind, unit.Error.String()), 200)
		if where := strings.TrimPrefix(name+strings.ReplaceAll(unit.InstanceLocation, "/", "."), "."); where != "" {
			text = clip(where, 100) + ": " + text
		}
		faults = append(faults, text)
	}
	for i := range unit.Errors {
		faults = append(faults, leaves(name, &unit.Errors[i])...)
	}
	return faults
}
