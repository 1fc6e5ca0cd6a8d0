package check

import (
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// replies checks that the accepted answers to a question agree, that the log has the answer once, and that the model got
// it.
func (c people) replies() {
	accepted := map[string][]string{}
	for _, r := range c.root.Replies {
		if r.TooLate != "" {
			c.report.Stats.TooLate++
			continue
		}
		accepted[r.CallID] = append(accepted[r.CallID], r.Content)
	}
	for _, k := range c.all {
		for t, call := range k.calls() {
			if call.Questions > 0 {
				c.reply(k.Session, t, call, accepted[call.ID])
			}
			delete(accepted, call.ID)
		}
		for _, e := range k.Log { // calls of turns that were undone do not count any more
			delete(accepted, e.GetQuestionRequested().GetCallId())
		}
	}
	for id := range accepted {
		c.fault(Asked, c.root, "an answer to a question of call %s was accepted, but it asked nothing", id)
	}
}

// reply checks the answers to the question of a call. A turn that was interrupted may have ended before it got the
// answer.
func (c people) reply(s *record.Session, t *fold.Turn, call *fold.Call, accepted []string) {
	interrupted := t.State == sessionv1.TurnState_TURN_STATE_INTERRUPTED
	if call.Questions != 1 || len(call.Replies) > 1 || len(call.Replies) == 0 && !interrupted {
		c.fault(Asked, s, "call %s asked %d questions, and the log has the answers %q", call.ID, call.Questions, call.Replies)
	}
	if len(call.Replies) == 0 {
		return
	}
	for _, content := range accepted {
		if content != call.Replies[0] {
			c.fault(Asked, s, "the answer %q to call %s was accepted, and the log has %q", content, call.ID, call.Replies[0])
		}
	}
	if len(accepted) == 0 && !interrupted {
		c.fault(Asked, s, "the log has the answer %q to call %s, which was not accepted", call.Replies[0], call.ID)
	}
	if call.Replies[0] == "" {
		c.report.Stats.Declined++
		return
	}
	c.report.Stats.Replied++
	label := ""
	for _, l := range script.Labels {
		if strings.Contains(call.Replies[0], l) {
			label = l
		}
	}
	if call.Outcome == outcomeOK && !strings.Contains(call.Result, script.Question+" "+label) {
		c.fault(Asked, s, "call %s got the answer %q, and its result is %q", call.ID, call.Replies[0], call.Result)
	}
}

// declined reports whether a person did not want to answer the question of a call.
func declined(c *fold.Call) bool { return len(c.Replies) == 1 && c.Replies[0] == "" }
