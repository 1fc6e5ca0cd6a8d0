package check

import (
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// course returns what the model plays in a turn: its own plan up to the step where a message joined it, and
// then the plan of that message, from its beginning.
func (c *checker) course(s *record.Session, t *fold.Turn) script.Expected {
	said := map[string]string{}
	plan, _ := c.script.Expect(t.Said)
	next, out := 0, script.Expected{}
	for _, e := range s.Log {
		switch {
		case e.GetTurnQueued() != nil:
			said[e.GetTurn()] = fold.Text(e.GetTurnQueued().GetContent())
		case e.GetStepFinished() != nil && e.GetTurn() == t.Name && next < len(plan.Steps):
			out.Steps = append(out.Steps, plan.Steps[next])
			next++
		case e.GetTurnSteered() != nil && e.GetTurnSteered().GetInto() == t.Name:
			plan, _ = c.script.Expect(said[e.GetTurn()])
			next = 0
		}
	}
	out.Steps, out.Final = append(out.Steps, plan.Steps[next:]...), plan.Final
	return out
}

// joined checks a turn whose message was put into another: it ends like the other one, and has no steps of
// its own.
func (c *checker) joined(s *record.Session, t *fold.Turn, state *fold.State) {
	c.report.Stats.Joined++
	into := state.Turn(t.Into)
	if into == nil || into.State != t.State || into.Final != t.Final || into.Reason != t.Reason || len(t.Steps) > 0 {
		c.fault(Arrivals, s, "the turn %s (%q) joined %s and ended %v %s, with %d steps of its own", t.Name, t.Said, t.Into, t.State, t.Reason, len(t.Steps))
	}
}

// interrupted checks the steps of a turn until a message or a budget stopped it. An undone turn has nothing
// that counts.
func (c *checker) interrupted(s *record.Session, t *fold.Turn, want script.Expected) {
	switch t.Reason {
	case exhausted:
		c.report.Stats.Partial++
	case "INTERRUPTED":
		c.report.Stats.Interrupted++
	case "ROLLED_BACK":
		c.report.Stats.RolledBack++
		if len(t.Steps) > 0 {
			c.fault(Voids, s, "the turn %s (%q) was undone, and %d steps of it still count", t.Name, t.Said, len(t.Steps))
		}
	default:
		c.fault(Arrivals, s, "the turn %s (%q) ended INTERRUPTED by %q", t.Name, t.Said, t.Reason)
	}
	if len(t.Steps) > len(want.Steps) {
		c.fault(Completes, s, "the interrupted turn %s (%q) has %d steps, want %d at most", t.Name, t.Said, len(t.Steps), len(want.Steps))
		return
	}
	for i, step := range t.Steps {
		if i+1 < len(t.Steps) {
			c.step(s, t, step, want.Steps[i], i+1)
			continue
		}
		c.brokenStep(s, t, step, want.Steps[i])
	}
}

// brokenStep checks the last step of an interrupted turn: it began as the script says, and its calls ended.
func (c *checker) brokenStep(s *record.Session, t *fold.Turn, got *fold.Step, want script.Step) {
	c.report.Stats.Steps++
	text, thinking := got.Text()
	if !strings.HasPrefix(strings.Join(want.Text, ""), text) || !strings.HasPrefix(strings.Join(want.Thinking, ""), thinking) {
		c.fault(Completes, s, "the last step of the interrupted %q streamed %q and the thoughts %q", t.Said, text, thinking)
	}
	if len(got.Calls) > len(want.Calls) {
		c.fault(Completes, s, "the last step of the interrupted %q has %d calls, want %d at most", t.Said, len(got.Calls), len(want.Calls))
		return
	}
	for i, call := range got.Calls {
		c.report.Stats.Calls++
		switch call.Outcome {
		case sessionv1.ToolOutcome_TOOL_OUTCOME_OK, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN,
			sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED:
		case sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR:
			if ofServer(call.Tool) || call.Tool == script.Task && gave(s, call) {
				continue // it was not made, or its subagent was stopped as well
			}
			fallthrough
		default:
			c.fault(Completes, s, "call %s of the interrupted %q ended %v %q", call.ID, t.Said, call.Outcome, call.Result)
		}
		if call.Tool != want.Calls[i].Tool || call.Finished != 1 {
			c.fault(Completes, s, "call %s of the interrupted %q, %s, ended %d times", call.ID, t.Said, call.Tool, call.Finished)
		}
	}
}

// place is the position of a turn in the log.
type place struct {
	turn                      string
	on                        sessionv1.OnActive
	queued, started, finished int64
}

// urgent reports whether the message goes before those that only wait.
func (p *place) urgent() bool {
	return p.on == sessionv1.OnActive_ON_ACTIVE_INTERRUPT || p.on == sessionv1.OnActive_ON_ACTIVE_ROLLBACK
}

// arrivals checks the order of the turns, and that each interrupted one has a message that requested it.
func (c *checker) arrivals(s *record.Session, state *fold.State) {
	at := map[string]*place{}
	var order []*place
	for _, a := range s.Accepted {
		if at[a.Turn] == nil {
			at[a.Turn] = &place{turn: a.Turn, on: a.OnActive}
			order = append(order, at[a.Turn])
		}
	}
	for _, e := range s.Log {
		p := at[e.GetTurn()]
		switch {
		case p == nil:
		case e.GetTurnQueued() != nil:
			p.queued = e.GetSeq()
		case e.GetTurnStarted() != nil:
			p.started = e.GetSeq()
		case e.GetTurnFinished() != nil:
			p.finished = e.GetSeq()
		}
	}
	for i, p := range order {
		if i > 0 && p.queued < order[i-1].queued {
			c.fault(Arrivals, s, "%s was accepted before %s, and the log has them the other way round", order[i-1].turn, p.turn)
		}
		for _, q := range order[:i] {
			c.order(s, q, p)
		}
		if t := state.Turn(p.turn); t != nil && t.Into == "" && t.State == sessionv1.TurnState_TURN_STATE_INTERRUPTED {
			c.cause(s, t, p, order)
		}
	}
}

// order checks that of two turns in the order of acceptance, the right one began first. Turns that joined
// another one did not begin.
func (c *checker) order(s *record.Session, first, second *place) {
	if first.started == 0 || second.started == 0 {
		return
	}
	overtakes := second.urgent() && !first.urgent() && second.queued < first.started
	if overtakes != (second.started < first.started) {
		c.fault(Arrivals, s, "%s (%v) was accepted before %s (%v), and they began at %d and %d", first.turn, first.on, second.turn, second.on, first.started, second.started)
	}
}

// cause checks that a turn was stopped by a message: the message was accepted meanwhile, and no turn began
// between the stopped turn's end and a message that goes first.
func (c *checker) cause(s *record.Session, t *fold.Turn, p *place, order []*place) {
	stops := func(q *place) bool {
		undoes := q.on == sessionv1.OnActive_ON_ACTIVE_ROLLBACK
		return q != p && q.queued < p.finished && (undoes || t.Reason != "ROLLED_BACK" && q.urgent())
	}
	if !slices.ContainsFunc(order, func(q *place) bool { return stops(q) && q.finished > p.finished }) {
		c.fault(Arrivals, s, "the turn %s (%q) ended INTERRUPTED by %s, and no message asked for it", t.Name, t.Said, t.Reason)
	}
	var next *place
	for _, q := range order {
		if q.started > p.finished && (next == nil || q.started < next.started) {
			next = q
		}
	}
	if next == nil || !next.urgent() {
		c.fault(Arrivals, s, "after the interrupted turn %s (%q) another one began than that which stopped it", t.Name, t.Said)
	}
}

// voids checks the ranges that no longer count: they are before the event that names them, and begin and end
// with events. A rollback undoes everything from the undone turn's beginning on.
func (c *checker) voids(s *record.Session) {
	begins, ends, started := map[int64]bool{}, map[int64]bool{}, map[string]int64{}
	for _, e := range s.Log {
		if e.GetTurnStarted() != nil {
			started[e.GetTurn()] = e.GetFirstSeq()
		}
		if r := e.GetStepRestarted(); r.GetVoidLastSeq() > 0 && (!begins[r.GetVoidFirstSeq()] || !ends[r.GetVoidLastSeq()] || r.GetVoidFirstSeq() > r.GetVoidLastSeq()) {
			c.fault(Voids, s, "step.restarted at %d names %d..%d, which are not whole events before it", e.GetSeq(), r.GetVoidFirstSeq(), r.GetVoidLastSeq())
		}
		if r := e.GetSessionRewound(); r.GetUndoneTurn() != "" && (r.GetVoidFirstSeq() != started[r.GetUndoneTurn()] || r.GetVoidLastSeq() != e.GetFirstSeq()-1) {
			c.fault(Voids, s, "session.rewound at %d names %d..%d for a turn that began at %d", e.GetSeq(), r.GetVoidFirstSeq(), r.GetVoidLastSeq(), started[r.GetUndoneTurn()])
		}
		begins[e.GetFirstSeq()], ends[e.GetSeq()] = true, true
	}
}
