package check

import (
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// exhausted is why a budget ends a turn.
const exhausted = "BUDGET_EXHAUSTED"

// spent is the cost and the time of a model call.
type spent struct {
	session    *record.Session
	began, end time.Time
	nano       int64
}

// budgets checks the cost of model calls by the price table, including those of undone turns: at most a
// budget within any of its windows. A call in two windows belongs to one of them, so it does not count for a
// single window here, but all calls count against all windows together.
func (c *checker) budgets() {
	var all []spent
	for _, s := range c.run.Sessions {
		all = append(all, c.costs(s)...)
		for _, child := range descendants(s) {
			all = append(all, c.costs(child)...)
		}
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

// costs returns the costs of a session's model calls in its log; each must match the price table.
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

// stopped reports whether a message or a budget may have ended a turn as it ended.
func (c *checker) stopped(s *record.Session, t *fold.Turn) bool {
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
