package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// How an agent says how its work went.
const (
	VerdictNone   = "none"
	VerdictTool   = "tool"
	VerdictHeader = "header"
)

// Finishes tells whether the agent has the session's own tool finish.
func (s Spec) Finishes() bool { return s.Verdict == VerdictTool || len(s.OutputSchema) > 0 }

// Heads tells whether the agent's final message may begin with a header.
func (s Spec) Heads() bool { return s.Verdict == VerdictHeader }

func (s Spec) checkVerdict() error {
	switch s.Verdict {
	case "", VerdictNone, VerdictTool:
	case VerdictHeader:
		if len(s.OutputSchema) > 0 {
			return errors.New("output-schema and verdict: header exclude each other; the output is handed over by the tool finish")
		}
	default:
		return fmt.Errorf("verdict %q is not none, tool or header", s.Verdict)
	}
	if s.Finishes() && slices.Contains(s.Tools, verdict.Tool) {
		return fmt.Errorf("tools has %s, which is the name of the session's own tool for a verdict", verdict.Tool)
	}
	_, err := verdict.Compile(s.OutputSchemaJSON())
	return err
}

// OutputSchemaJSON is the schema of the agent's output as JSON text; empty: it owes none.
func (s Spec) OutputSchemaJSON() string {
	if len(s.OutputSchema) == 0 {
		return ""
	}
	b, err := json.Marshal(s.OutputSchema)
	if err != nil {
		panic(err) // plain values always marshal
	}
	return string(b)
}
