package agui

import (
	"maps"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// foldSubagent takes the events of subagents.
func (e *Encoder) foldSubagent(l *lane, from *sessionv1.Event) bool {
	switch b := from.GetBody().(type) {
	case *sessionv1.Event_SubagentStarted:
		s := b.SubagentStarted
		sub := e.lane(l, s.GetCallId())
		sub.session, sub.turn, sub.name, sub.about = s.GetSession(), wire.LastPart(s.GetTurn()), s.GetSubagent(), s.GetDescription()
		e.announce(sub)
	case *sessionv1.Event_SubagentEvent:
		sub := e.lane(l, b.SubagentEvent.GetCallId())
		if t := b.SubagentEvent.GetEvent().GetTurn(); t != "" {
			sub.turn = wire.LastPart(t)
		}
		e.fold(sub, b.SubagentEvent.GetEvent())
	case *sessionv1.Event_SubagentFinished:
		e.endSubagent(e.lane(l, b.SubagentFinished.GetCallId()), b.SubagentFinished)
	default:
		return false
	}
	return true
}

// lane returns the lane of a subagent.
func (e *Encoder) lane(parent *lane, call string) *lane {
	if e.lanes[call] == nil {
		e.lanes[call] = &lane{call: call, parent: parent, turn: call, name: "subagent"}
	}
	return e.lanes[call]
}

// announce begins a subagent, once a run: also one that goes on after the run before was interrupted.
func (e *Encoder) announce(l *lane) {
	if l.announced || l.ended || !e.live() || e.done {
		return
	}
	if l.parent.call != "" {
		e.announce(l.parent)
	}
	l.announced = true
	ev := event{"type": "SUBAGENT_STARTED", "subagentRunId": l.call, "name": l.name, "parentToolCallId": l.call}
	if l.about != "" {
		ev["description"] = l.about
	}
	if l.parent.call != "" {
		ev["parentSubagentRunId"] = l.parent.call
	}
	e.out = append(e.out, ev)
}

// endSubagent ends a subagent.
func (e *Encoder) endSubagent(l *lane, f *sessionv1.SubagentFinished) {
	if l.ended {
		return
	}
	e.announce(l)
	for _, call := range slices.Sorted(maps.Keys(e.lanes)) {
		if sub := e.lanes[call]; sub.parent == l && sub.announced { // its end was lost
			e.endSubagent(sub, &sessionv1.SubagentFinished{Error: &sessionv1.TurnError{Message: "The subagent that gave the work ended first."}})
		}
	}
	e.closeLane(l)
	switch f.GetState() {
	case sessionv1.TurnState_TURN_STATE_COMPLETE:
		e.emit(nil, event{"type": "SUBAGENT_FINISHED", "subagentRunId": l.call, "outcome": event{"type": "success"}})
	default:
		ev := event{"type": "SUBAGENT_ERROR", "subagentRunId": l.call, "message": f.GetError().GetMessage()}
		if r := f.GetError().GetReason(); r != "" {
			ev["code"] = r
		}
		e.emit(nil, ev)
	}
	l.announced, l.ended = false, true
}
