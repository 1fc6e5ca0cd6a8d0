package check

import (
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/reduce"
)

// allowed says whether a person let a call run.
func allowed(c *reduce.Call) bool { return len(c.Answers) == 1 && c.Answers[0] }

// denied says whether a person refused a call.
func denied(c *reduce.Call) bool { return len(c.Answers) == 1 && !c.Answers[0] }

// answers checks that of the answers about a call one was accepted, and that the log tells the same one, once.
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
					c.answer(s, call, accepted[call.ID], late[call.ID])
				}
				delete(accepted, call.ID)
			}
		}
	}
	for id := range accepted {
		c.fault(Asked, s, "an answer about call %s was accepted, and nobody was asked", id)
	}
}

func (c *checker) answer(s *record.Session, call *reduce.Call, accepted, late []record.Answer) {
	if call.Asked != 1 || len(call.Answers) != 1 {
		c.fault(Asked, s, "about call %s a person was asked %d times, and the log has the answers %v", call.ID, call.Asked, call.Answers)
	}
	if len(accepted) != 1 {
		c.fault(Asked, s, "about call %s %d answers were accepted, %d came too late", call.ID, len(accepted), len(late))
		return
	}
	if len(call.Answers) > 0 && call.Answers[0] != accepted[0].Approved {
		c.fault(Asked, s, "the answer %t about call %s was accepted, and the log has %t", accepted[0].Approved, call.ID, call.Answers[0])
	}
	if accepted[0].Approved {
		c.report.Stats.Approved++
	} else {
		c.report.Stats.Denied++
	}
}
