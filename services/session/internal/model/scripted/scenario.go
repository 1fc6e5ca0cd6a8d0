package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// Limits of a scenario. They keep a scenario of unknown origin from using up
// the server's memory.
const (
	maxScenarioBytes = 1 << 20
	maxTurns         = 1000
	maxSteps         = 1000
	maxTools         = 64
	maxChunks        = 100_000
	maxRepeat        = 1_000_000
	maxPause         = 10 * time.Minute
	maxPattern       = 1000
)

// Scenario is the script of a model. [Parse] reads it from YAML. It does not
// change afterwards, so many streams may play it at once.
type Scenario struct {
	// Name is the model's name: `scripted:NAME`.
	Name string `yaml:"name"`
	// Description says what the scenario shows; for people.
	Description string `yaml:"description"`
	// ContextTokens is the longest request, with about four bytes a token; a
	// longer one fails with context_full. 0 means no bound.
	ContextTokens int64 `yaml:"context_tokens"`
	// Turns are tried in order; the first one that fits the conversation is
	// played.
	Turns []Turn `yaml:"turns"`
	// Fallback is played when none of Turns fits.
	Fallback *Turn `yaml:"fallback"`
}

// Turn is the answer to one message of a person: a step for each model call.
type Turn struct {
	// When is a regular expression (RE2) that the person's last text must
	// match; empty fits all.
	When string `yaml:"when"`
	// Turn is the number of the turn in the conversation, from 1; 0 fits all.
	Turn int `yaml:"turn"`
	// Tools must all be offered to the model.
	Tools []string `yaml:"tools"`
	// Steps are played one for each model call.
	Steps []Step `yaml:"steps"`

	when *regexp.Regexp
}

// Step is one answer of the model. Thinking comes first, then the text, then
// the tool calls.
type Step struct {
	// Pause is the time before the first piece.
	Pause Duration `yaml:"pause"`
	// Thinking and Text, in pieces.
	Thinking Chunks `yaml:"thinking"`
	Text     Chunks `yaml:"text"`
	// Repeat is how often Text is repeated; 0 means once.
	Repeat int `yaml:"repeat"`
	// Delay is the time before each piece of thinking and text.
	Delay Duration `yaml:"delay"`
	// TokensPerSecond paces all pieces instead, with about four bytes a token.
	TokensPerSecond float64 `yaml:"tokens_per_second"`
	// Tools are the calls that the model asks for.
	Tools []ToolCall `yaml:"tools"`
	// Error makes the step fail.
	Error *Failure `yaml:"error"`
	// StopReason is by default `tool_use` with Tools, otherwise `end_turn`.
	StopReason string `yaml:"stop_reason"`
	// Usage is estimated from the lengths when it is left out.
	Usage *Usage `yaml:"usage"`
}

// ToolCall is a call that the model asks for.
type ToolCall struct {
	Name string `yaml:"name"`
	// ID is the provider's call id; by default it is made from turn, step and
	// index.
	ID string `yaml:"id"`
	// Input is the arguments.
	Input *Input `yaml:"input"`
	// Raw is the arguments' text instead, which need not be JSON.
	Raw *string `yaml:"raw"`
}

// Failure is how a step fails.
type Failure struct {
	// Kind is `unavailable`, `authentication`, `refused`, `context_full` or
	// `billing`; found from Status when empty.
	Kind string `yaml:"kind"`
	// Status is the HTTP status to report; 0 is a lost connection.
	Status     int      `yaml:"status"`
	Message    string   `yaml:"message"`
	RetryAfter Duration `yaml:"retry_after"`
	// Midway is how many pieces are emitted before the failure.
	Midway int `yaml:"midway"`
	// Times is the number of attempts that fail; 0 means all.
	Times int `yaml:"times"`
}

// Usage is the reported usage of a step, in tokens.
type Usage struct {
	Input      int64 `yaml:"input_tokens"`
	Output     int64 `yaml:"output_tokens"`
	CacheRead  int64 `yaml:"cache_read_tokens"`
	CacheWrite int64 `yaml:"cache_write_tokens"`
	Thinking   int64 `yaml:"thinking_tokens"`
}

// Chunks is text in pieces. In YAML it is a list of pieces, or one string that
// is cut into words.
type Chunks []string

// UnmarshalYAML reads a string or a list of strings.
func (c *Chunks) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		var s string
		if err := n.Decode(&s); err != nil {
			return err
		}
		*c = words(s)
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return fmt.Errorf("line %d: text must be a string or a list of strings", n.Line)
	}
	*c = list
	return nil
}

// Duration is a time span, in YAML as `250ms` or `2s`.
type Duration time.Duration

// UnmarshalYAML reads Go's notation of durations.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return fmt.Errorf("line %d: %q is not a duration such as 250ms or 2s", n.Line, n.Value)
	}
	if v < 0 || v > maxPause {
		return fmt.Errorf("line %d: the duration %s is not between 0 and %s", n.Line, v, maxPause)
	}
	*d = Duration(v)
	return nil
}

// Input is a mapping that becomes JSON text, with its order and every digit.
type Input struct{ node *yaml.Node }

// UnmarshalYAML keeps the mapping as it was written. It decodes it once, to find errors.
func (i *Input) UnmarshalYAML(n *yaml.Node) error {
	var plain map[string]any
	if err := n.Decode(&plain); err != nil {
		return err
	}
	i.node = n
	return nil
}

// Parse reads a scenario. Its errors name the line of the fault. Unknown keys
// are errors.
func Parse(data []byte) (*Scenario, error) {
	if len(data) > maxScenarioBytes {
		return nil, fmt.Errorf("the scenario has %d bytes, more than the %d allowed", len(data), maxScenarioBytes)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, plain(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	s := &Scenario{}
	if err := dec.Decode(s); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the scenario is empty")
		}
		return nil, plain(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("a scenario file holds one YAML document, this one has more")
	}
	if err := s.check(lines{&root}); err != nil {
		return nil, err
	}
	return s, nil
}

var unknownField = regexp.MustCompile(`field (.*) not found in type \S+`)

// plain rewrites errors of the YAML package for people who do not know our
// types.
func plain(err error) error {
	text := bytes.TrimPrefix([]byte(err.Error()), []byte("yaml: "))
	text = bytes.TrimPrefix(text, []byte("unmarshal errors:\n  "))
	return errors.New(string(unknownField.ReplaceAll(text, []byte("unknown key $1"))))
}

// Arguments returns the call's arguments as text, with the templates in its
// strings filled in.
func (c *ToolCall) Arguments(fill func(string) string) (string, error) {
	if c.Raw != nil {
		return fill(*c.Raw), nil
	}
	if c.Input == nil {
		return "{}", nil
	}
	return jsontext.FromYAML(c.Input.node, fill)
}
