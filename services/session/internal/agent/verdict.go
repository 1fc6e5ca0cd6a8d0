package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// Ways in which an agent reports how its work went.
const (
	VerdictNone   = "none"
	VerdictTool   = "tool"
	VerdictHeader = "header"
)

// Finishes reports whether the agent has the session's own tool finish.
func (s Spec) Finishes() bool { return s.Verdict == VerdictTool || s.OwesOutput() }

// Heads reports whether the agent's final message may begin with a header.
func (s Spec) Heads() bool { return s.Verdict == VerdictHeader }

// checkVerdict also returns the field that is wrong.
func (s Spec) checkVerdict() (field string, _ error) {
	switch s.Verdict {
	case "", VerdictNone, VerdictTool:
	case VerdictHeader:
		if s.OwesOutput() {
			return "verdict", errors.New("output-schema and verdict: header exclude each other; the agent returns the output with the tool finish")
		}
	default:
		return "verdict", fmt.Errorf("verdict %q is not none, tool or header", s.Verdict)
	}
	if s.Finishes() && slices.Contains(s.Tools, verdict.Tool) {
		return "tools", fmt.Errorf("tools has %s, which is the name of the session's own tool for a verdict", verdict.Tool)
	}
	_, err := verdict.Compile(string(s.OutputSchema))
	return "output_schema_json", err
}

// OwesOutput reports whether the agent must return a structured output; an empty schema
// requires none.
func (s Spec) OwesOutput() bool { return s.OutputSchema != "" && s.OutputSchema != "{}" }
