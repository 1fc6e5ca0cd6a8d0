package fold

import (
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Ask is what a turn, or a subagent of it, asks a person: an approval or a question.
type Ask struct {
	Call     string                       // the id under which it is answered
	Session  string                       // the subagent's session, where it is answered; empty: that of the log
	Subagent string                       // the calls that lead to the subagent, with / between them; empty: the turn itself
	Approval *sessionv1.ApprovalRequested // nil: it is a question
	Question *sessionv1.QuestionRequested // nil: it is an approval

	turn string // of the log
}

// Asks follows what is asked and has no answer yet. The zero value has nothing. It is for one goroutine.
type Asks struct {
	open  []*Ask
	lanes map[string]string // sessions of subagents, by the calls that lead to them
}

// Open returns what has no answer, the oldest first.
func (a *Asks) Open() []*Ask { return slices.Clone(a.open) }

// Take takes an event of the log. It returns what the event asks, or nil, and what it closes.
func (a *Asks) Take(e *sessionv1.Event) (asked *Ask, closed []*Ask) {
	return a.take(e, e.GetTurn(), "")
}

// take is Take for an event of a subagent's session, too.
func (a *Asks) take(e *sessionv1.Event, turn, lane string) (asked *Ask, closed []*Ask) {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ApprovalRequested:
		asked = &Ask{Call: b.ApprovalRequested.GetCallId(), Approval: b.ApprovalRequested}
	case *sessionv1.Event_QuestionRequested:
		asked = &Ask{Call: b.QuestionRequested.GetCallId(), Question: b.QuestionRequested}
	case *sessionv1.Event_ApprovalResolved:
		closed = a.close(func(o *Ask) bool { return o.Approval != nil && o.Call == b.ApprovalResolved.GetCallId() })
	case *sessionv1.Event_QuestionResolved:
		r := b.QuestionResolved
		closed = a.close(func(o *Ask) bool {
			return o.Question != nil && o.Call == r.GetCallId() && o.Question.GetQuestion().GetId() == r.GetQuestionId()
		})
	case *sessionv1.Event_ToolCallFinished: // a call that was stopped needs no answer
		closed = a.close(func(o *Ask) bool { return o.Call == b.ToolCallFinished.GetCallId() })
	case *sessionv1.Event_SubagentStarted:
		if a.lanes == nil {
			a.lanes = map[string]string{}
		}
		a.lanes[within(lane, b.SubagentStarted.GetCallId())] = b.SubagentStarted.GetSession()
	case *sessionv1.Event_SubagentEvent:
		return a.take(b.SubagentEvent.GetEvent(), turn, within(lane, b.SubagentEvent.GetCallId()))
	case *sessionv1.Event_SubagentFinished:
		closed = a.end(turn, within(lane, b.SubagentFinished.GetCallId()))
	case *sessionv1.Event_TurnFinished:
		closed = a.end(turn, lane)
	}
	if asked != nil {
		asked.Session, asked.Subagent, asked.turn = a.session(e, lane), lane, turn
		a.open = append(a.open, asked)
	}
	return asked, closed
}

// session returns where what an event of a subagent asks is answered. Its turn says so where the start was not seen.
func (a *Asks) session(e *sessionv1.Event, lane string) string {
	if lane == "" {
		return ""
	}
	if known := a.lanes[lane]; known != "" {
		return known
	}
	session, _, _ := strings.Cut(e.GetTurn(), "/turns/")
	return session
}

// within returns the lane of a subagent's subagent.
func within(lane, call string) string { return strings.TrimPrefix(lane+"/"+call, "/") }

// end closes what a subagent of a turn and those below it ask; for "": all of the turn.
func (a *Asks) end(turn, lane string) (closed []*Ask) {
	return a.close(func(o *Ask) bool {
		return o.turn == turn && (lane == "" || o.Subagent == lane || strings.HasPrefix(o.Subagent, lane+"/"))
	})
}

func (a *Asks) close(which func(*Ask) bool) (closed []*Ask) {
	var open []*Ask
	for _, o := range a.open {
		if which(o) {
			closed = append(closed, o)
		} else {
			open = append(open, o)
		}
	}
	a.open = open
	return closed
}
