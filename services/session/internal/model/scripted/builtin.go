package scripted

import (
	"embed"
	"fmt"
	"io"
	"os"
	"path"
)

//go:embed scenarios/*.yaml
var scenarios embed.FS

// Builtin returns the scenarios that are part of the program, by name:
// `default`, which plays until a model is configured, and `demo`.
func Builtin() (map[string]*Scenario, error) {
	entries, err := scenarios.ReadDir("scenarios")
	if err != nil {
		return nil, fmt.Errorf("list the built-in scenarios: %w", err)
	}
	out := map[string]*Scenario{}
	for _, e := range entries {
		data, err := scenarios.ReadFile(path.Join("scenarios", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the built-in scenario %s: %w", e.Name(), err)
		}
		s, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("built-in scenario %s: %w", e.Name(), err)
		}
		out[s.Name] = s
	}
	return out, nil
}

// Load reads a scenario from a file.
func Load(file string) (*Scenario, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open scenario: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxScenarioBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read scenario %s: %w", file, err)
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	return s, nil
}
