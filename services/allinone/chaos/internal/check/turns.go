package check

import (
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

const outcomeOK = sessionv1.ToolOutcome_TOOL_OUTCOME_OK

// accepted checks that every acknowledged turn exists once, and no other turn.
func (c *checker) accepted(s *record.Session, state *fold.State) {
	listed := map[string]int{}
	for _, t := range s.Turns {
		listed[t.GetName()]++
	}
	known := map[string]string{}
	for _, a := range s.Accepted {
		c.report.Stats.Turns++
		for _, o := range a.Others {
			if o != a.Turn {
				c.fault(Once, s, "the request %s was answered with %s and with %s", a.RequestID, a.Turn, o)
			}
		}
		if other, twice := known[a.Turn]; twice {
			c.fault(Once, s, "the requests %s and %s were answered with the same turn %s", other, a.RequestID, a.Turn)
		}
		known[a.Turn] = a.RequestID
		if listed[a.Turn] != 1 {
			c.fault(NotLost, s, "the accepted turn %s is listed %d times", a.Turn, listed[a.Turn])
		}
		if t := state.Turn(a.Turn); t == nil {
			c.fault(NotLost, s, "the accepted turn %s is not in the log", a.Turn)
		} else if t.Said != a.Text {
			c.fault(NotLost, s, "the turn %s was accepted with %q and has %q", a.Turn, a.Text, t.Said)
		}
	}
	says := scheduled(s)
	for _, t := range state.Turns {
		if text, ok := says[t.Name]; ok && text != t.Said {
			c.fault(Schedules, s, "the turn %s says %q, and its schedule %q", t.Name, t.Said, text)
		} else if !ok && known[t.Name] == "" {
			c.fault(Once, s, "the turn %s (%q) was not reported", t.Name, t.Said)
		}
		starts := 1
		if t.Into != "" {
			starts = 0
		}
		if t.Started != starts || t.Finished != 1 {
			c.fault(Once, s, "the turn %s (%q) started %d times and ended %d times", t.Name, t.Said, t.Started, t.Finished)
		}
	}
}

// turns checks that every turn had the result of the script.
func (c *checker) turns(s *record.Session, log *fold.Log, state *fold.State) {
	for _, t := range s.Turns {
		if told := state.Turn(t.GetName()); told == nil || told.State != t.GetState() || told.Final != t.GetFinalText() {
			c.fault(Completes, s, "the turn %s is %v and its events tell another story", t.GetName(), t.GetState())
		}
	}
	for _, t := range state.Turns {
		if _, ok := c.script.Expect(t.Said); !ok {
			c.fault(Completes, s, "the turn %s has the text %q, which has no source", t.Name, t.Said)
			continue
		}
		c.turn(s, t, state)
	}
	c.unknown(s, log)
}

// turn checks a turn's steps against its course: all of them if it is COMPLETE, the existing ones if it was
// stopped.
func (c *checker) turn(s *record.Session, t *fold.Turn, state *fold.State) {
	want := c.course(s, t)
	switch {
	case t.Into != "":
		c.joined(s, t, state)
		return
	case c.stopped(s, t):
		c.interrupted(s, t, want)
		return
	case t.State != sessionv1.TurnState_TURN_STATE_COMPLETE:
		c.fault(Completes, s, "the turn %s (%q) ended %v %s", t.Name, t.Said, t.State, t.Reason)
		return
	case len(t.Steps) != len(want.Steps):
		c.fault(Completes, s, "the turn %s (%q) has %d steps, want %d", t.Name, t.Said, len(t.Steps), len(want.Steps))
		return
	case t.Final != want.Final:
		c.fault(Completes, s, "the turn %s (%q) ended with %q, want %q", t.Name, t.Said, t.Final, want.Final)
	}
	c.report.Stats.Complete++
	for i, step := range t.Steps {
		c.step(s, t, step, want.Steps[i], i+1)
	}
}

func (c *checker) step(s *record.Session, t *fold.Turn, got *fold.Step, want script.Step, number int) {
	c.report.Stats.Steps++
	for _, b := range got.Blocks {
		if !b.Finished {
			c.fault(Completes, s, "step %d of %q: a block of text has no end", number, t.Said)
		}
	}
	text, thinking := got.Text()
	if int(got.Number) != number || got.Finished != 1 {
		c.fault(Completes, s, "step %d of %q has the number %d and ended %d times", number, t.Said, got.Number, got.Finished)
	}
	if text != strings.Join(want.Text, "") || thinking != strings.Join(want.Thinking, "") {
		c.fault(Completes, s, "step %d of %q streamed %q and the thoughts %q, want %q and %q", number, t.Said, text, thinking,
			strings.Join(want.Text, ""), strings.Join(want.Thinking, ""))
	}
	if len(got.Calls) != len(want.Calls) {
		c.fault(Completes, s, "step %d of %q has %d calls, want %d", number, t.Said, len(got.Calls), len(want.Calls))
		return
	}
	for i, call := range got.Calls {
		c.report.Stats.Calls++
		ok := call.Outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_OK || call.Outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
		if denied(call) || declined(call) {
			ok = call.Outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED
		}
		if ofServer(call.Tool) && call.Outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR {
			c.report.Stats.Unmade++
			ok = true // it was not made, as the server's own count shows
		}
		if call.Tool == script.Task {
			ok = gave(s, call)
		}
		if want.Calls[i].Looks && call.Outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR {
			ok = handedBack(t, number-1) == "" // there was nothing to look at
		}
		if call.Tool != want.Calls[i].Tool || call.Finished != 1 || !ok {
			c.fault(Completes, s, "call %s of %q, %s: ended %d times with %v %q", call.ID, t.Said, call.Tool, call.Finished, call.Outcome, call.Result)
		}
		if asked := call.Asked > 0; asked != want.Calls[i].Asked {
			c.fault(Asked, s, "about call %s of %q a person was asked %d times", call.ID, t.Said, call.Asked)
		}
		if asks := call.Questions > 0; asks != want.Calls[i].Asks {
			c.fault(Asked, s, "call %s of %q asked %d questions", call.ID, t.Said, call.Questions)
		}
		if effect := want.Calls[i].Effect + want.Calls[i].Noted + want.Calls[i].Prompt; !strings.Contains(call.Arguments, effect) {
			c.fault(Completes, s, "call %s of %q has the arguments %s, want the effect %s", call.ID, t.Said, call.Arguments, effect)
		}
	}
}

// unknown checks that every call with an unknown end was running while the sandbox died.
func (c *checker) unknown(s *record.Session, log *fold.Log) {
	asked := map[string]time.Time{}
	for _, e := range log.Counting() {
		if a := e.GetToolCallArguments(); a != nil {
			asked[a.GetCallId()] = e.GetTime().AsTime()
		}
		f := e.GetToolCallFinished()
		if f == nil || f.GetOutcome() != sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
			continue
		}
		c.report.Stats.UnknownCalls++
		from, to := asked[f.GetCallId()], e.GetTime().AsTime()
		if explained := c.faults.died(from, to) || ofServer(f.GetTool()) && c.faults.unreached(f.GetTool(), from, to); !explained {
			c.fault(Unknown, s, "the end of call %s (%s) is not known, and no sandbox died while it ran", f.GetCallId(), f.GetTool())
		}
	}
}
