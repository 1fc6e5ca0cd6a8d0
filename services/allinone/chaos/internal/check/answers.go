package check

import (
	"cmp"
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// denied reports whether a person refused a call.
func denied(c *fold.Call) bool { return len(c.Answers) == 1 && !c.Answers[0] }

// people checks what people said about the calls of a session and its subagents.
type people struct {
	*checker
	root *record.Session
	all  []kin
}

// answers checks that the accepted answers about a call agree, and that the log has the answer once.
func (c people) answers() {
	accepted, late := map[string][]record.Answer{}, map[string][]record.Answer{}
	for _, a := range c.root.Answers {
		switch {
		case a.TooLate != "":
			c.report.Stats.TooLate++
			late[a.CallID] = append(late[a.CallID], a)
		default:
			accepted[a.CallID] = append(accepted[a.CallID], a)
		}
	}
	for _, k := range c.all {
		for t, call := range k.calls() {
			if call.Asked > 0 {
				c.answer(k.Session, t, call, accepted[call.ID], late[call.ID])
			}
			delete(accepted, call.ID)
		}
		for _, e := range k.Log { // calls of turns that were undone do not count any more
			delete(accepted, e.GetApprovalRequested().GetCallId())
		}
	}
	for id := range accepted {
		c.fault(Asked, c.root, "an answer about call %s was accepted, but no person was asked", id)
	}
}

// answer checks the answers about a call. A turn that was interrupted may have ended before it got the
// answer.
func (c people) answer(s *record.Session, t *fold.Turn, call *fold.Call, accepted, late []record.Answer) {
	interrupted := t.State == sessionv1.TurnState_TURN_STATE_INTERRUPTED
	if call.Asked != 1 || len(call.Answers) > 1 || len(call.Answers) == 0 && !interrupted {
		c.fault(Asked, s, "about call %s a person was asked %d times, and the log has the answers %v", call.ID, call.Asked, call.Answers)
	}
	if len(accepted) == 0 && len(call.Answers) == 0 && interrupted {
		return
	}
	other := func(a record.Answer) bool {
		return a.Approved != accepted[0].Approved || a.Arguments != accepted[0].Arguments
	}
	if len(accepted) == 0 || slices.ContainsFunc(accepted, other) {
		c.fault(Asked, s, "about call %s %d answers were accepted, %d came too late", call.ID, len(accepted), len(late))
		return
	}
	if a := accepted[0]; len(call.Answers) > 0 && (call.Answers[0] != a.Approved || call.Edited != a.Arguments) {
		c.fault(Asked, s, "the answer %t %s about call %s was accepted, and the log has %t %s", a.Approved, a.Arguments, call.ID, call.Answers[0], call.Edited)
	}
	switch {
	case len(call.Answers) == 0:
	case accepted[0].Arguments != "":
		c.report.Stats.Edited++
	case accepted[0].Approved:
		c.report.Stats.Approved++
	default:
		c.report.Stats.Denied++
	}
}

// allowance is what persons said about calls, including those of undone turns.
type allowance struct {
	allowed string            // the arguments with which calls may run
	edited  map[string]string // effects that a person put in place of others
}

// allowances returns what the logs say about the calls that a person allowed.
func allowances(all []kin) allowance {
	arguments, a := map[string]string{}, allowance{edited: map[string]string{}}
	var events []*event
	for _, k := range all {
		events = append(events, k.Log...)
	}
	var allowed strings.Builder
	for _, e := range events {
		if a := e.GetToolCallArguments(); a != nil {
			arguments[a.GetCallId()] = a.GetArgumentsJson()
		}
		r := e.GetApprovalResolved()
		if !r.GetApproved() {
			continue
		}
		was, is := arguments[r.GetCallId()], cmp.Or(r.GetUpdatedArgumentsJson(), arguments[r.GetCallId()])
		allowed.WriteString(is)
		now := script.Lines(is)
		for i, line := range script.Lines(was) {
			if is != was && i < len(now) {
				a.edited[line] = now[i]
			}
		}
	}
	a.allowed = allowed.String()
	return a
}
