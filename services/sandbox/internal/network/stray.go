package network

import (
	"context"
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// maxStrays is how many strays of a sandbox are told and logged one by one, until a command tells of them.
const maxStrays = 100

// strays are what was refused in a sandbox because no command can have asked for it: what they
// would be told with is told already. The next command that ends in the sandbox tells of them.
type strays struct {
	uses   []box.Use
	beyond box.Use // all that there was no room for
}

// stray refuses what no command can have asked for, and has it told all the same. It may name one
// whose end was told just now: its span is below that one's call. mu is held.
func (n *Network) stray(at *outlet, ended *command, asked bool) (egress.Use, error) {
	why := "no command ran in the sandbox when it came"
	var u egress.Use
	if ended != nil {
		why = fmt.Sprintf("it names the command %s, whose end was told before it came", ended.id)
		u.Exec, u.Context = ended.id, context.WithoutCancel(ended.ctx) // which cuts nothing off: the refusal is to be read
	}
	u.Ended = func(e egress.Event) {
		if e.Outcome == egress.Opened {
			return // requests came, each of which is told
		}
		if !asked {
			e.Message = why + ": " + e.Message
		}
		n.keep(at, e)
	}
	return u, &egress.RefusalError{Outcome: egress.Aborted, Message: why}
}

// keep has a stray told with the next command.
func (n *Network) keep(at *outlet, e egress.Event) {
	u := makeUse(e)
	u.Host = strings.Clone(u.Host) // of a request, which would be kept with it
	n.mu.Lock()
	s := &at.strays
	room := len(s.uses) < maxStrays
	if room {
		s.uses = append(s.uses, u)
	} else {
		if s.beyond.Connections == 0 {
			s.beyond.Outcome, s.beyond.Started = u.Outcome, u.Started
			s.beyond.Message = fmt.Sprintf("no command ran in the sandbox when they came, nor when %d others did", maxStrays)
		}
		s.beyond.Connections++
		s.beyond.Sent += u.Sent
		s.beyond.Received += u.Received
		s.beyond.Duration += u.Duration
	}
	n.mu.Unlock()
	if room {
		n.log.Warn("refused a connection of a sandbox that is no running command's", "tenant", at.way.Tenant, "session", at.way.Session,
			"names", e.Exec, "host", u.Host, "port", u.Port, "outcome", u.Outcome, "reason", u.Message)
	}
}

// take is what is to be told of strays. mu is held.
func (s *strays) take() []box.Use {
	uses := s.uses
	if s.beyond.Connections > 0 {
		uses = append(uses, s.beyond)
	}
	*s = strays{}
	return uses
}
