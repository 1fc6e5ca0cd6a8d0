package flag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// document is a good file.
type document struct {
	flags   map[string]*definition // those that are known
	unknown []string
}

func (d *document) names() []string { return slices.Sorted(maps.Keys(d.flags)) }

// definition is a flag of the file.
type definition struct {
	State    string         `json:"state"`
	Variants map[string]any `json:"variants"`
	Default  *string        `json:"defaultVariant"`
	Rule     any            `json:"targeting"`
	Metadata map[string]any `json:"metadata"`
}

// parse reads a file. An error names the place that is at fault.
func parse(text []byte, runtimes []string) (*document, error) {
	var file struct {
		Schema     string                     `json:"$schema"`
		Flags      map[string]json.RawMessage `json:"flags"`
		Evaluators json.RawMessage            `json:"$evaluators"`
		Metadata   map[string]any             `json:"metadata"`
	}
	if err := decode(text, &file); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), ": "))
	}
	switch {
	case file.Flags == nil:
		return nil, errors.New("flags: is missing")
	case file.Evaluators != nil:
		return nil, errors.New("$evaluators: shared rules are not supported; write the rule into each flag")
	}
	d := &document{flags: map[string]*definition{}}
	for _, name := range slices.Sorted(maps.Keys(file.Flags)) {
		if name != Runtime && name != KeepAlive {
			d.unknown = append(d.unknown, name)
			continue
		}
		f := &definition{}
		err := decode(file.Flags[name], f)
		if err == nil {
			err = f.check(name, runtimes)
		}
		if err != nil {
			return nil, fmt.Errorf("flags.%s%w", name, err)
		}
		d.flags[name] = f
	}
	return d, nil
}

// decode returns errors that continue the name of a place.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(into); {
	case errors.Is(err, io.EOF):
		return errors.New(": the file is empty; write {\"flags\": {}} for no flags")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New(": the JSON value ends in the middle, so the file is cut off or a bracket is missing")
	case err != nil:
		return fmt.Errorf(": %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New(": the JSON value has something behind it")
	}
	return nil
}

// check returns an error that begins with the field.
func (f *definition) check(name string, runtimes []string) error {
	if f.State != "ENABLED" && f.State != "DISABLED" {
		return fmt.Errorf(".state: %q is neither ENABLED nor DISABLED", f.State)
	}
	if len(f.Variants) == 0 {
		return errors.New(".variants: is missing")
	}
	for _, variant := range slices.Sorted(maps.Keys(f.Variants)) {
		if err := checkValue(name, f.Variants[variant], runtimes); err != nil {
			return fmt.Errorf(".variants.%s: %w", variant, err)
		}
	}
	if f.Default != nil && !f.has(*f.Default) {
		return fmt.Errorf(".defaultVariant: %q is no variant", *f.Default)
	}
	if err := f.checkRule(name); err != nil {
		return fmt.Errorf(".targeting: %w", err)
	}
	return nil
}

func (f *definition) has(variant string) bool {
	_, ok := f.Variants[variant]
	return ok
}

func checkValue(name string, value any, runtimes []string) error {
	if name == KeepAlive {
		if _, ok := value.(bool); !ok {
			return errors.New("is neither true nor false")
		}
		return nil
	}
	text, _ := value.(string)
	_, attached := agent.AttachedName(text) // a process may attach at any time
	switch {
	case text == AgentsOwn || attached || slices.Contains(runtimes, text):
		return nil
	case text == agent.ClaudeCodeCLI:
		return fmt.Errorf("the runtime %s is not configured; set session.runtimes.%s.program", text, text)
	default:
		return fmt.Errorf("%v is neither %s nor one of the runtimes %s", value, AgentsOwn, strings.Join(runtimes, " and "))
	}
}
