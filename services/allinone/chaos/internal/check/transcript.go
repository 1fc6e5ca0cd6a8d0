package check

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// transcript checks the conversation like a model's API: the user begins, roles alternate, no message is
// empty, and every tool use has one result in the very next message. The user may also speak without an
// answer in between: when a message joins a turn, or comes after an interrupted one. A cut answer may have
// left no message. The messages that a fork has from another session are checked there.
func (c *checker) transcript(s *record.Session, state *fold.State) {
	steps, cut := 0, 0
	for _, t := range state.Turns {
		steps += len(t.Steps)
		if n := len(t.Steps); n > 0 && c.stopped(s, t) && t.Steps[n-1].Finished == 0 {
			cut++
		}
	}
	assistant, before := 0, sessionv1.Role_ROLE_ASSISTANT
	var open map[string]bool // the tool uses of the message before
	parent := ""
	own := inherited(s)
	for i, m := range s.Messages {
		if i >= own && m.GetRole() == sessionv1.Role_ROLE_ASSISTANT {
			assistant++
		}
		speaks := i < own || m.GetRole() == sessionv1.Role_ROLE_USER && i > 0 && s.Messages[i-1].GetTurn() != m.GetTurn()
		if m.GetRole() == before && !speaks {
			c.fault(Transcript, s, "message %d is of %v, as the one before, or begins", i+1, m.GetRole())
		}
		before = m.GetRole()
		if len(m.GetBlocks()) == 0 {
			c.fault(Transcript, s, "message %d is empty", i+1)
		}
		if m.GetParent() != parent {
			c.fault(Transcript, s, "message %d follows %q, want %q", i+1, m.GetParent(), parent)
		}
		parent = m.GetName()
		open = c.message(s, i+1, m, open)
	}
	if len(open) > 0 {
		c.fault(Transcript, s, "the last message has %d calls without a result", len(open))
	}
	if assistant > steps || assistant < steps-cut {
		c.fault(Transcript, s, "there are %d messages of the assistant and %d steps, %d of which were cut off", assistant, steps, cut)
	}
}

// message checks a message's blocks and returns its tool uses.
func (c *checker) message(s *record.Session, n int, m *sessionv1.Message, open map[string]bool) map[string]bool {
	uses := map[string]bool{}
	for _, b := range m.GetBlocks() {
		if u := b.GetToolUse(); u != nil {
			if m.GetRole() != sessionv1.Role_ROLE_ASSISTANT || uses[u.GetCallId()] {
				c.fault(Transcript, s, "message %d has the tool use %s, which is the user's or there twice", n, u.GetCallId())
			}
			uses[u.GetCallId()] = true
		}
		if r := b.GetToolResult(); r != nil {
			if !open[r.GetCallId()] {
				c.fault(Transcript, s, "message %d has a result of %s, for which the message before does not ask, or a second one", n, r.GetCallId())
			}
			delete(open, r.GetCallId())
		}
	}
	for id := range open {
		c.fault(Transcript, s, "message %d has no result of %s, for which the message before asks", n, id)
	}
	return uses
}
