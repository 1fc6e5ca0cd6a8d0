package check

import (
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/reduce"
)

// denied reports whether a person refused a call.
func denied(c *reduce.Call) bool { return len(c.Answers) == 1 && !c.Answers[0] }

// answers checks that the accepted answers about a call agree, and that the log has the answer once.
func (c *checker) answers(s *record.Session, state *reduce.State) {
	accepted, late := map[string][]record.Answer{}, map[string][]record.Answer{}
	for _, a := range s.Answers {
		switch {
		case a.TooLate != "":
			c.report.Stats.TooLate++
			late[a.CallID] = append(late[a.CallID], a)
		default:
			accepted[a.CallID] = append(accepted[a.CallID], a)
		}
	}
	for _, t := range state.Turns {
		for _, step := range t.Steps {
			for _, call := range step.Calls {
				if call.Asked > 0 {
					c.answer(s, t, call, accepted[call.ID], late[call.ID])
				}
				delete(accepted, call.ID)
			}
		}
	}
	for _, e := range s.Log { // calls of turns that were undone do not count any more
		delete(accepted, e.GetApprovalRequested().GetCallId())
	}
	for id := range accepted {
		c.fault(Asked, s, "an answer about call %s was accepted, but no person was asked", id)
	}
}

// answer checks the answers about a call. A turn that was interrupted may have ended before it got the
// answer.
func (c *checker) answer(s *record.Session, t *reduce.Turn, call *reduce.Call, accepted, late []record.Answer) {
	interrupted := t.State == sessionv1.TurnState_TURN_STATE_INTERRUPTED
	if call.Asked != 1 || len(call.Answers) > 1 || len(call.Answers) == 0 && !interrupted {
		c.fault(Asked, s, "about call %s a person was asked %d times, and the log has the answers %v", call.ID, call.Asked, call.Answers)
	}
	if len(accepted) == 0 && len(call.Answers) == 0 && interrupted {
		return
	}
	if len(accepted) == 0 || slices.ContainsFunc(accepted, func(a record.Answer) bool { return a.Approved != accepted[0].Approved }) {
		c.fault(Asked, s, "about call %s %d answers were accepted, %d came too late", call.ID, len(accepted), len(late))
		return
	}
	if len(call.Answers) > 0 && call.Answers[0] != accepted[0].Approved {
		c.fault(Asked, s, "the answer %t about call %s was accepted, and the log has %t", accepted[0].Approved, call.ID, call.Answers[0])
	}
	switch {
	case len(call.Answers) == 0:
	case accepted[0].Approved:
		c.report.Stats.Approved++
	default:
		c.report.Stats.Denied++
	}
}

// allowedArguments returns the arguments of all calls that a person allowed, including those of undone
// turns.
func allowedArguments(s *record.Session) string {
	arguments := map[string]string{}
	var allowed strings.Builder
	for _, e := range s.Log {
		if a := e.GetToolCallArguments(); a != nil {
			arguments[a.GetCallId()] = a.GetArgumentsJson()
		}
		if r := e.GetApprovalResolved(); r.GetApproved() {
			allowed.WriteString(arguments[r.GetCallId()])
		}
	}
	return allowed.String()
}
