package check

import (
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// ofServer reports whether a tool is an MCP server's.
func ofServer(tool string) bool { return strings.HasPrefix(tool, "mcp__") }

// note checks that the server on the network got a call at most once, once if it went well, and not if it was not made.
func (c *checker) note(s *record.Session, line string, outcome sessionv1.ToolOutcome) {
	n := c.run.Notes[line]
	c.noted[line] = true
	c.report.Stats.Notes += n
	unmade := outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR || outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED
	if n > 1 || n == 0 && outcome == outcomeOK || n > 0 && unmade {
		c.fault(Noted, s, "the call for %s ended %v, and the server got it %d times", line, outcome, n)
	}
}

// notes checks that calls alone have noted lines.
func (c *checker) notes() {
	for line, n := range c.run.Notes {
		if !c.noted[line] {
			c.faultOf(Noted, "the MCP server", "the line %q of no call was noted %d times", line, n)
		}
	}
}

// unreached reports whether a fault explains that the answer of an MCP server was lost: its caller died, or what is between.
func (l timeline) unreached(tool string, from, to time.Time) bool {
	for _, f := range l.run.Faults {
		between := f.Service == record.ToolsService || f.Service == record.Postgres || f.Service == record.SandboxService && tool == script.Here
		if between && l.lasted(f, from, to) {
			return true
		}
	}
	return false
}
