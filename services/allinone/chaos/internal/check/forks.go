package check

import (
	"slices"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// forks checks every fork against the session from which it was made.
type forks struct {
	*checker
	sessions map[string]*record.Session // by name
}

func (c forks) check() {
	for _, s := range c.run.Sessions {
		for _, name := range s.Unforked {
			if t := turnOf(s, name); t.GetHead() != "" {
				c.fault(Forks, s, "no fork was to be had from the turn %s, which ended after %s", name, t.GetHead())
			}
		}
		if s.Fork == nil {
			continue
		}
		c.report.Stats.Forks++
		if slices.ContainsFunc(s.Fork.Others, func(o string) bool { return o != s.Name }) {
			c.fault(Forks, s, "the request %s made several: %v", s.Fork.RequestID, s.Fork.Others)
		}
		source := c.sessions[s.Fork.From]
		if source == nil {
			c.fault(Forks, s, "it was made from %s, of which there is no recording", s.Fork.From)
			continue
		}
		c.prefix(s, source)
		c.copied(s, source)
	}
}

func turnOf(s *record.Session, name string) *sessionv1.Turn {
	for _, t := range s.Turns {
		if t.GetName() == name {
			return t
		}
	}
	return nil
}

// prefix checks that a fork begins with the conversation of its source up to the end of the turn that it was
// made from, even if that was undone or left behind.
func (c forks) prefix(s, source *record.Session) {
	if len(s.Log) == 0 || s.Log[0].GetSessionCreated().GetForkedFrom() != source.Name {
		c.fault(Forks, s, "its log does not begin with that it was made from %s", source.Name)
	}
	tree := map[string]*sessionv1.Message{}
	for _, m := range source.Tree {
		tree[m.GetName()] = m
	}
	var want []*sessionv1.Message
	for at := turnOf(source, s.Fork.Turn).GetHead(); at != ""; at = tree[at].GetParent() {
		want = append(want, tree[at])
	}
	slices.Reverse(want)
	got := s.Messages[:inherited(s)]
	if len(got) != len(want) {
		c.fault(Forks, s, "it begins with %d messages of %s, want the %d up to the end of %s", len(got), source.Name, len(want), s.Fork.Turn)
		return
	}
	for i, m := range got {
		same := m.GetRole() == want[i].GetRole() && slices.EqualFunc(m.GetBlocks(), want[i].GetBlocks(), func(a, b *sessionv1.Block) bool { return proto.Equal(a, b) })
		if !same {
			c.fault(Forks, s, "message %d is %v, and in %s it is %v", i+1, m, source.Name, want[i])
		}
	}
}

// inherited returns how many messages a session has from another one: they belong to no
// turn.
func inherited(s *record.Session) int {
	if s.Fork == nil {
		return 0
	}
	n := slices.IndexFunc(s.Messages, func(m *sessionv1.Message) bool { return m.GetTurn() != "" })
	if n < 0 {
		return len(s.Messages)
	}
	return n
}

// copied checks the lines that a fork has from its source. The files are copied at some time between the
// request and its answer. A command that had ended before and was never undone has left its line once; one
// that began after, or was undone before, has not.
func (c forks) copied(s, source *record.Session) {
	left := map[string]int{}
	for _, line := range s.Effects {
		left[line]++
	}
	for _, e := range tellEffects(source) {
		n := left[e.line]
		switch {
		case n > 1:
			c.fault(Forks, s, "it has the effect %s of %s %d times", e.line, source.Name, n)
		case n == 0 && e.certain && !e.ended.After(s.Fork.Begin.Add(-c.limits.Slack)) && e.undone.IsZero():
			c.fault(Forks, s, "it lacks the effect %s, whose call in %s had ended well before the fork was asked for", e.line, source.Name)
		case n > 0 && e.asked.After(s.Fork.Time.Add(c.limits.Slack)):
			c.fault(Forks, s, "it has the effect %s, whose call in %s began after the fork was there", e.line, source.Name)
		case n > 0 && e.certain && !e.undone.IsZero() && e.undone.Before(s.Fork.Begin.Add(-c.limits.Slack)):
			c.fault(Forks, s, "it has the effect %s, which was undone in %s before the fork was asked for", e.line, source.Name)
		}
	}
}

// inheritedEffects returns the lines in a fork's files that calls of its source may have
// left.
func inheritedEffects(run *record.Run, s *record.Session) map[string]bool {
	all := map[string]bool{}
	for _, source := range run.Sessions {
		if s.Fork == nil || source.Name != s.Fork.From {
			continue
		}
		for _, e := range tellEffects(source) {
			all[e.line] = true
		}
	}
	return all
}
