package scripted

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

var (
	scenarioName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)
	stopReasons  = []string{"", "end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal"}
)

// lines finds the lines of a document's values, for messages to people.
type lines struct{ root *yaml.Node }

// at returns the line of the value at the path of keys and indexes, or of the
// last existing value on the way.
func (l lines) at(path ...any) int {
	n := l.root
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	line := n.Line
	for _, p := range path {
		if n = child(n, p); n == nil {
			return line
		}
		line = n.Line
	}
	return line
}

// child returns the value of n at a key or an index, or nil.
func child(n *yaml.Node, p any) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch p := p.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && p < len(n.Content) {
			return n.Content[p]
		}
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == p {
				return n.Content[i+1]
			}
		}
	}
	return nil
}

// fault returns an error with the line of the value at path.
func (l lines) fault(path []any, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", l.at(path...), fmt.Sprintf(format, args...))
}

// check finds faults that the YAML types do not, and compiles the patterns.
func (s *Scenario) check(l lines) error {
	if !scenarioName.MatchString(s.Name) {
		return l.fault([]any{"name"}, "name %q must be 1 to 63 of a-z, 0-9, '.', '_', '-' and begin with a letter", s.Name)
	}
	if len(s.Turns) == 0 && s.Fallback == nil {
		return l.fault(nil, "a scenario needs turns or a fallback")
	}
	if len(s.Turns) > maxTurns {
		return l.fault([]any{"turns"}, "%d turns are more than the %d allowed", len(s.Turns), maxTurns)
	}
	for i := range s.Turns {
		if err := s.Turns[i].check(l, []any{"turns", i}); err != nil {
			return err
		}
	}
	if f := s.Fallback; f != nil {
		if f.When != "" || f.Turn != 0 || f.Tools != nil {
			return l.fault([]any{"fallback"}, "the fallback fits always, so it has no when, turn or tools")
		}
		return f.check(l, []any{"fallback"})
	}
	return nil
}

func (t *Turn) check(l lines, path []any) error {
	in := func(p ...any) []any { return append(slices.Clone(path), p...) }
	if len(t.When) > maxPattern {
		return l.fault(in("when"), "the pattern has more than %d bytes", maxPattern)
	}
	var err error
	if t.when, err = regexp.Compile(t.When); err != nil {
		return l.fault(in("when"), "%v", err)
	}
	if t.Turn < 0 {
		return l.fault(in("turn"), "turns are counted from 1")
	}
	if len(t.Steps) == 0 || len(t.Steps) > maxSteps {
		return l.fault(in("steps"), "a turn needs 1 to %d steps, this one has %d", maxSteps, len(t.Steps))
	}
	for i := range t.Steps {
		if err := t.Steps[i].check(l, in("steps", i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) check(l lines, path []any) error {
	in := func(p ...any) []any { return append(slices.Clone(path), p...) }
	switch {
	case len(s.Thinking)+len(s.Text) > maxChunks:
		return l.fault(path, "a step has at most %d pieces of text", maxChunks)
	case s.Repeat < 0 || s.Repeat > maxRepeat:
		return l.fault(in("repeat"), "repeat %d is not between 0 and %d", s.Repeat, maxRepeat)
	case !(s.TokensPerSecond >= 0 && s.TokensPerSecond <= 1e6):
		return l.fault(in("tokens_per_second"), "tokens_per_second %v is not between 0 and a million", s.TokensPerSecond)
	case s.TokensPerSecond > 0 && s.TokensPerSecond < 0.01:
		return l.fault(in("tokens_per_second"), "tokens_per_second %v is less than 0.01", s.TokensPerSecond)
	case s.TokensPerSecond > 0 && s.Delay > 0:
		return l.fault(in("delay"), "delay and tokens_per_second exclude each other")
	case !slices.Contains(stopReasons, s.StopReason):
		return l.fault(in("stop_reason"), "stop_reason %q is not one of %q", s.StopReason, stopReasons[1:])
	case len(s.Tools) > maxTools:
		return l.fault(in("tools"), "%d tool calls are more than the %d allowed", len(s.Tools), maxTools)
	case s.empty():
		return l.fault(path, "a step needs text, thinking, tools or an error")
	}
	for _, text := range slices.Concat(s.Thinking, s.Text) {
		if err := checkTemplate(text); err != nil {
			return l.fault(in("text"), "%v", err)
		}
		if !utf8.ValidString(text) {
			return l.fault(in("text"), "the text is not UTF-8")
		}
	}
	for i := range s.Tools {
		if err := s.Tools[i].check(l, in("tools", i)); err != nil {
			return err
		}
	}
	if err := s.Usage.check(); err != nil {
		return l.fault(in("usage"), "%v", err)
	}
	return s.Error.check(l, in("error"))
}

func (s *Step) empty() bool {
	return len(s.Thinking) == 0 && len(s.Text) == 0 && len(s.Tools) == 0 && s.Error == nil && s.StopReason == ""
}

func (c *ToolCall) check(l lines, path []any) error {
	if c.Name == "" || len(c.Name) > 128 {
		return l.fault(path, "a tool call needs a name of at most 128 bytes")
	}
	if !utf8.ValidString(c.Name) || !utf8.ValidString(c.ID) || c.Raw != nil && !utf8.ValidString(*c.Raw) {
		return l.fault(path, "name, id or raw is not UTF-8")
	}
	if c.Raw != nil && c.Input != nil {
		return l.fault(path, "a tool call has input or raw, not both")
	}
	var bad error
	_, err := c.Arguments(func(s string) string {
		if e := checkTemplate(s); e != nil {
			bad = e
		}
		return s
	})
	if err != nil {
		return l.fault(append(path, "input"), "the input cannot be written as JSON: %v", err)
	}
	if bad != nil {
		return l.fault(append(path, "input"), "%v", bad)
	}
	return nil
}

func (f *Failure) check(l lines, path []any) error {
	if f == nil {
		return nil
	}
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		return l.fault(path, "status %d is not 0 or 400 to 599", f.Status)
	}
	if _, ok := kinds[f.Kind]; f.Kind != "" && !ok {
		return l.fault(path, "kind %q is not one of unavailable, authentication, refused, context_full, billing", f.Kind)
	}
	if f.Midway < 0 || f.Times < 0 {
		return l.fault(path, "midway and times must not be negative")
	}
	return nil
}

func (u *Usage) check() error {
	if u != nil && min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Thinking) < 0 {
		return fmt.Errorf("token counts must not be negative")
	}
	return nil
}
