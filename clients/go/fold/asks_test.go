package fold_test

import (
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
)

func TestAsks(t *testing.T) {
	asks := func(call string) *event {
		return &event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: call}}}
	}
	asked := func(call, id string) *event {
		return &event{Body: &sessionv1.Event_QuestionRequested{QuestionRequested: &sessionv1.QuestionRequested{CallId: call, Question: &commonv1.Question{Id: id}}}}
	}
	resolved := func(call string) *event {
		return &event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{CallId: call}}}
	}
	answered := func(call, id string) *event {
		return &event{Body: &sessionv1.Event_QuestionResolved{QuestionResolved: &sessionv1.QuestionResolved{CallId: call, QuestionId: id}}}
	}
	ended := func(call string) *event {
		return &event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: &sessionv1.ToolCallFinished{CallId: call}}}
	}
	finished := &event{Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{}}}
	gave := func(call string) *event {
		return &event{Body: &sessionv1.Event_SubagentStarted{SubagentStarted: &sessionv1.SubagentStarted{CallId: call, Session: "sessions/" + call}}}
	}
	by := func(call string, e *event) *event {
		return &event{Body: &sessionv1.Event_SubagentEvent{SubagentEvent: &sessionv1.SubagentEvent{CallId: call, Event: e}}}
	}
	gone := func(call string) *event {
		return &event{Body: &sessionv1.Event_SubagentFinished{SubagentFinished: &sessionv1.SubagentFinished{CallId: call}}}
	}
	for _, c := range []struct {
		name   string
		events []*event
		want   string
		closed int // by the last event
	}{
		{"nothing", []*event{text(1, 1, "a")}, "", 0},
		{"approvals wait in their order", []*event{asks("2"), asks("1")}, "2 1", 0},
		{"an answer closes its own", []*event{asks("2"), asks("1"), resolved("2")}, "1", 1},
		{"an answer to nothing", []*event{asks("1"), resolved("2")}, "1", 0},
		{"an answer to an approval leaves the call's question", []*event{asks("1"), asked("1", "a"), resolved("1")}, "1/a", 1},
		{"questions of one call", []*event{asked("1", "a"), asked("1", "b"), answered("1", "a")}, "1/b", 1},
		{"the end of a call closes what it asked", []*event{asks("1"), asked("1", "a"), asked("2", "b"), ended("1")}, "2/b", 2},
		{"the end of the turn closes all", []*event{asks("1"), asked("2", "a"), finished}, "", 2},
		{"the end of another turn closes nothing", []*event{of("t", asks("1")), of("u", &event{Body: finished.Body})}, "1", 0},
		{"a subagent asks in its own session", []*event{gave("s"), by("s", asks("1"))}, "sessions/s:1", 0},
		{"a subagent whose start was not seen", []*event{by("s", of("sessions/s/turns/1", asks("1")))}, "sessions/s:1", 0},
		{"a subagent of no call is not the turn", []*event{{Body: &sessionv1.Event_SubagentStarted{SubagentStarted: &sessionv1.SubagentStarted{Session: "sessions/x"}}}, asks("1")}, "1", 0},
		{"a subagent's subagent", []*event{gave("s"), by("s", gave("t")), by("s", by("t", asks("1")))}, "sessions/t:1", 0},
		{"an answer to a subagent", []*event{gave("s"), by("s", asks("1")), by("s", resolved("1"))}, "", 1},
		{"the end of a subagent closes what it and those below it ask", []*event{gave("s"), by("s", gave("t")), by("s", by("t", asks("1"))), asks("2"), gone("s")}, "2", 1},
		{"the end of a subagent's turn closes its own alone", []*event{gave("s"), by("s", asks("1")), asks("2"), by("s", finished)}, "2", 1},
		{"a call that asks again", []*event{asks("1"), resolved("1"), asks("1")}, "1", 0},
	} {
		var a fold.Asks
		var closed []*fold.Ask
		for _, e := range c.events {
			_, closed = a.Take(e)
		}
		var open []string
		for _, o := range a.Open() {
			name := o.Call
			if o.Question != nil {
				name += "/" + o.Question.GetQuestion().GetId()
			}
			if o.Session != "" {
				name = o.Session + ":" + name
			}
			open = append(open, name)
		}
		if got := strings.Join(open, " "); got != c.want || len(closed) != c.closed {
			t.Errorf("%s: %q is open and %d are closed", c.name, got, len(closed))
		}
	}
}
