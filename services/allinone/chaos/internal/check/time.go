package check

import (
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// breaksSteps reports whether a fault may make a replica restart a step.
func breaksSteps(f record.Fault) bool {
	return f.Service == record.SessionService || f.Service == record.Postgres
}

// restarts checks that steps were restarted only after a fault, and that one fault did not restart many: each
// restart is attributed to the fault that explains the fewest so far.
func (c *checker) restarts(s *record.Session) {
	began, explained := map[int32]time.Time{}, make([]int, len(c.run.Faults))
	for _, e := range s.Log {
		at := e.GetTime().AsTime()
		if e.GetStepStarted() != nil {
			began[e.GetStep()] = at
		}
		r := e.GetStepRestarted()
		if r == nil {
			continue
		}
		c.report.Stats.Restarted++
		best := -1
		for i, f := range c.run.Faults {
			if breaksSteps(f) && c.faults.lasted(f, began[e.GetStep()], at) && (best < 0 || explained[i] < explained[best]) {
				best = i
			}
		}
		if best < 0 {
			c.fault(Restarts, s, "step %d of %s was restarted (%s), and nothing had happened", e.GetStep(), e.GetTurn(), r.GetReason())
			continue
		}
		if explained[best]++; explained[best] > c.limits.Restarts {
			c.fault(Restarts, s, "step %d of %s was restarted (%s), the %dth time after one fault", e.GetStep(), e.GetTurn(), r.GetReason(), explained[best])
		}
	}
}

// takeovers measures how long the sessions of a killed replica stood still.
type takeovers struct {
	*checker
	sessions map[string]*record.Session // by name
}

func (c takeovers) check() {
	for i, f := range c.run.Faults {
		if f.Service != record.SessionService || f.Kind != record.Kill {
			continue
		}
		for _, name := range f.Held {
			if s := c.sessions[name]; s != nil {
				c.measure(s, f, i)
			}
		}
	}
}

func (c takeovers) measure(s *record.Session, f record.Fault, index int) {
	active := false
	for _, e := range s.Log {
		if at := e.GetTime().AsTime(); at.After(f.Begin) {
			if !active {
				return
			}
			took := at.Sub(f.Begin)
			if end, disturbed := c.faults.disturbed(f, at, index); disturbed {
				c.report.Stats.Disturbed = append(c.report.Stats.Disturbed, took)
				took = max(0, at.Sub(end))
				c.report.Stats.Calmed = append(c.report.Stats.Calmed, took)
			} else {
				c.report.Stats.Takeovers = append(c.report.Stats.Takeovers, took)
			}
			if took > c.limits.Takeover {
				c.fault(Takeover, s, "%s was killed at %s and, with nothing else out of order, the next event came after %s", f.Target, f.Begin.Format(time.TimeOnly), took.Round(time.Millisecond))
			}
			return
		}
		if e.GetTurnStarted() != nil {
			active = true
		}
		if e.GetTurnFinished() != nil {
			active = false
		}
	}
}
