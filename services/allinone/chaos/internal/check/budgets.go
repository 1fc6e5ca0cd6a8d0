package check

import (
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/reduce"
)

// exhausted is why a budget ends a turn.
const exhausted = "BUDGET_EXHAUSTED"

// spent is what a model call cost, and when it was under way.
type spent struct {
	session    *record.Session
	began, end time.Time
	nano       int64
}

// budgets adds up what model calls cost by the price table, also those of turns that were undone: no more than a budget
// within any of its windows. A call that lay in two of them belongs to one, and is counted in none here, but all are counted
// against all windows together.
func (c *checker) budgets() {
	var all []spent
	for _, s := range c.run.Sessions {
		all = append(all, c.costs(s)...)
	}
	for _, b := range c.run.Budgets {
		var sum int64
		windows := map[int64]int64{} // by their number: what calls within them cost
		for _, x := range all {
			if x.session.Tenant != b.Tenant || b.User != "" && x.session.User != b.User {
				continue
			}
			sum += x.nano
			// It was reserved a little before the log tells of it.
			first, last := x.began.Add(-c.limits.Slack).UnixNano()/int64(b.Window), x.end.UnixNano()/int64(b.Window)
			if first == last {
				windows[first] += x.nano
			}
		}
		for w, nano := range windows {
			c.report.Stats.Fullest = max(c.report.Stats.Fullest, int(100*nano/b.NanoUSD))
			if nano > b.NanoUSD {
				c.faultOf(Budgets, b.Tenant+"/"+b.User, "in the window from %s calls cost %d nano-USD, and %d were allowed",
					time.Unix(0, w*int64(b.Window)).UTC().Format(time.TimeOnly), nano, b.NanoUSD)
			}
		}
		touched := c.run.End.UnixNano()/int64(b.Window) - c.run.Begin.UnixNano()/int64(b.Window) + 1
		if sum > b.NanoUSD*touched {
			c.faultOf(Budgets, b.Tenant+"/"+b.User, "calls cost %d nano-USD, and %d were allowed in each of %d windows", sum, b.NanoUSD, touched)
		}
	}
}

// costs are those of a session's model calls, as its log tells them; each must be what the price table says.
func (c *checker) costs(s *record.Session) []spent {
	var all []spent
	began := map[string]time.Time{} // the step under way, by turn
	for _, e := range s.Log {
		if e.GetStepStarted() != nil {
			began[e.GetTurn()] = e.GetTime().AsTime()
		}
		f := e.GetStepFinished()
		if f == nil {
			continue
		}
		u := f.GetUsage()
		nano := u.GetInputTokens()*c.run.Prices.Input + u.GetOutputTokens()*c.run.Prices.Output
		if u.GetCostNanoUsd() != nano {
			c.fault(Budgets, s, "step %d of %s used %d and %d tokens and cost %d nano-USD, want %d", e.GetStep(), e.GetTurn(), u.GetInputTokens(), u.GetOutputTokens(), u.GetCostNanoUsd(), nano)
		}
		all = append(all, spent{s, began[e.GetTurn()], e.GetTime().AsTime(), nano})
	}
	return all
}

// stopped says whether a turn may have ended as it did because somebody stopped it, or a budget that there is.
func (c *checker) stopped(s *record.Session, t *reduce.Turn) bool {
	if t.State == sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		return true
	}
	for _, b := range c.run.Budgets {
		if b.Tenant == s.Tenant && (b.User == "" || b.User == s.User) && t.State == sessionv1.TurnState_TURN_STATE_PARTIAL && t.Reason == exhausted {
			return true
		}
	}
	return false
}
