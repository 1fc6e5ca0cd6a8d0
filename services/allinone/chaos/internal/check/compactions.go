package check

import (
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// compactions checks that each request to compact had one result: the view got shorter, and a message of the
// conversation stands for the part that was left out; or the log says that compaction was not possible. Other
// checks ensure that the conversation itself is kept.
func (c *checker) compactions(s *record.Session) {
	answers := 0
	for _, e := range s.Log {
		if e.GetWarning().GetReason() == "NOT_COMPACTED" {
			answers++
		}
		x := e.GetSessionCompacted()
		if x == nil {
			continue
		}
		answers++
		c.report.Stats.Compacted++
		kept := slices.ContainsFunc(s.Tree, func(m *sessionv1.Message) bool { return m.GetName() == x.GetMessage() })
		if x.GetTrigger() != "requested" || x.GetTokensAfter() >= x.GetTokensBefore() || !kept {
			c.fault(Compactions, s, "the view was shortened (%s) from %d to %d tokens, for which %q stands", x.GetTrigger(), x.GetTokensBefore(), x.GetTokensAfter(), x.GetMessage())
		}
	}
	if answers != len(s.Compactions) {
		c.fault(Compactions, s, "the view was to be shortened %d times, but the log has %d outcomes", len(s.Compactions), answers)
	}
}
