package check

import (
	"iter"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// kin is a session, or one of a subagent of it, with its log.
type kin struct {
	*record.Session
	log  *fold.Log
	past *fold.State
}

// calls returns all calls that count, each with its turn.
func (k kin) calls() iter.Seq2[*fold.Turn, *fold.Call] {
	return func(yield func(*fold.Turn, *fold.Call) bool) {
		for _, t := range k.past.Turns {
			for _, step := range t.Steps {
				for _, call := range step.Calls {
					if !yield(t, call) {
						return
					}
				}
			}
		}
	}
}

// family returns a session and all below it.
func (c *checker) family(s *record.Session, log *fold.Log, past *fold.State) []kin {
	all := []kin{{s, log, past}}
	for _, child := range s.Children {
		log := c.tile(child, "the log", child.Log)
		all = append(all, c.family(child, log, log.Past())...)
	}
	return all
}

// descendants returns the sessions of all subagents below a session.
func descendants(s *record.Session) (all []*record.Session) {
	for _, child := range s.Children {
		all = append(append(all, child), descendants(child)...)
	}
	return all
}

// household checks the sessions of subagents.
type household struct {
	*checker
	all []kin
}

// check checks that each belongs to one call, does what that asks for in one turn, and has ended before the turn above it.
func (c household) check() {
	for _, parent := range c.all {
		calls := map[string]bool{}
		for _, child := range c.all {
			if child.Call.GetSession() != parent.Name {
				continue
			}
			if calls[child.Call.GetCallId()] {
				c.fault(Subagents, child.Session, "it is not the only one of call %s of %s", child.Call.GetCallId(), parent.Name)
			}
			calls[child.Call.GetCallId()] = true
			c.subagent(parent, child)
		}
	}
}

func (c household) subagent(parent, child kin) {
	st := &c.report.Stats
	st.Subagents++
	st.Deepest = max(st.Deepest, int(child.Call.GetDepth()))
	if len(child.Turns) != 1 || len(child.past.Turns) != 1 {
		c.fault(Subagents, child.Session, "it has %d turns, and %d in its log", len(child.Turns), len(child.past.Turns))
		return
	}
	t := child.past.Turns[0]
	if t.Started > 1 || t.Finished != 1 {
		c.fault(Subagents, child.Session, "its turn began %d times and ended %d times", t.Started, t.Finished)
	}
	if prompt := promptOf(parent.Session, child.Call.GetCallId()); prompt != t.Said {
		c.fault(Subagents, child.Session, "it was told %q, and call %s of %s says %q", t.Said, child.Call.GetCallId(), parent.Name, prompt)
	}
	if mine, its := endOf(child.Session, t.Name), endOf(parent.Session, child.Call.GetTurn()); mine.IsZero() || mine.After(its) {
		c.fault(Subagents, child.Session, "it ended at %s, and the turn above it at %s", mine.Format(time.StampMilli), its.Format(time.StampMilli))
	}
	turns := st.TurnStats // of people
	c.turns(child.Session, child.log, child.past)
	turns.Steps = st.Steps
	st.Helped += st.Complete - turns.Complete
	st.TurnStats = turns
	c.transcript(child.Session, child.log.State())
	c.restarts(child.Session)
}

// promptOf returns what a call of a session gives to a subagent.
func promptOf(s *record.Session, call string) string {
	for _, e := range s.Log {
		if a := e.GetToolCallArguments(); a.GetCallId() == call && a.GetTool() == script.Task {
			return script.PromptIn(a.GetArgumentsJson())
		}
	}
	return ""
}

// endOf returns when a turn ended, as a log tells it.
func endOf(s *record.Session, turn string) time.Time {
	for _, e := range s.Log {
		if e.GetTurnFinished() != nil && e.GetTurn() == turn {
			return e.GetTime().AsTime()
		}
	}
	return time.Time{}
}

// childOf returns the session of a call's subagent; nil without one.
func childOf(s *record.Session, call string) *record.Session {
	for _, child := range s.Children {
		if child.Call.GetCallId() == call {
			return child
		}
	}
	return nil
}

// gave reports whether a call that gives work to a subagent ended as its subagent did.
func gave(s *record.Session, call *fold.Call) bool {
	child := childOf(s, call.ID)
	if child == nil || len(child.Turns) != 1 {
		return false
	}
	if t := child.Turns[0]; t.GetState() == sessionv1.TurnState_TURN_STATE_COMPLETE {
		return call.Outcome == outcomeOK && strings.Contains(call.Result, t.GetFinalText())
	}
	return call.Outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
}
