package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// entry is a server of a file .mcp.json.
type entry struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// ParseFile reads a file in the form of .mcp.json: an object `mcpServers` with a server for each
// name. References to variables stay as they are, because the acting user's variables replace
// them; only a reference at the beginning of a URL is replaced here, by lookup.
func ParseFile(text []byte, lookup func(name string) (string, bool)) ([]*commonv1.McpServer, error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if file.Servers == nil {
		return nil, errors.New(`it has no object "mcpServers"`)
	}
	all := Servers{}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s, err := parseEntry(file.Servers[name], lookup)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = s
	}
	if err := all.Check(); err != nil {
		return nil, err
	}
	return all.Protos(), nil
}

func parseEntry(text json.RawMessage, lookup func(string) (string, bool)) (Server, error) {
	var e entry
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // a setting that has no effect would mislead
	if err := d.Decode(&e); err != nil {
		return Server{}, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	s := Server{Command: e.Command, Args: e.Args, Env: e.Env, URL: e.URL, Headers: e.Headers}
	switch e.Type {
	case "", "stdio":
		if e.Type == "" && e.URL != "" {
			return s, errors.New(`a server with a url needs "type": "http" or "sse"`)
		}
		if e.URL != "" || e.Command == "" {
			return s, errors.New("a server of type stdio has a command and no url")
		}
	case "http", "streamable-http", "sse":
		if e.URL == "" {
			return s, fmt.Errorf("a server of type %s needs a url", e.Type)
		}
		s.SSE = e.Type == "sse"
	default:
		return s, fmt.Errorf("the type %q is not one of stdio, http, sse", e.Type)
	}
	if ref := reference.FindString(s.URL); ref != "" && strings.HasPrefix(s.URL, ref) {
		m := reference.FindStringSubmatch(ref)
		value, ok := lookup(m[1])
		if text, has := strings.CutPrefix(m[2], ":-"); !ok && has {
			value, ok = text, true
		}
		if !ok {
			return s, fmt.Errorf("url: the environment has no variable %s", m[1])
		}
		s.URL = value + strings.TrimPrefix(s.URL, ref)
	}
	return s, nil
}
