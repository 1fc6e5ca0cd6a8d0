package network

import (
	"context"
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// maxStrays is how many strays of a sandbox are reported and logged one by one, until a command reports
// them.
const maxStrays = 100

// strays are refused uses in a sandbox that belong to no command: the command that they name has already
// been reported. The next command that ends in the sandbox reports them.
type strays struct {
	uses   []box.Use
	beyond box.Use // all beyond maxStrays
}

// stray refuses a use that belongs to no command, and still reports it. It may name a command whose end was
// just reported: its span is below that call. mu is held.
func (n *Network) stray(at *outlet, ended *command, asked bool) (egress.Use, error) {
	why := "no command ran in the sandbox when it came"
	var u egress.Use
	if ended != nil {
		why = fmt.Sprintf("it names the command %s, whose end was told before it came", ended.id)
		u.Exec, u.Context = ended.id, context.WithoutCancel(ended.ctx) // does not cut the connection: the client is to read the refusal
	}
	u.Ended = func(e egress.Event) {
		if e.Outcome == egress.Opened {
			return // requests came, and each is reported
		}
		if !asked {
			e.Message = why + ": " + e.Message
		}
		n.keep(at, e)
	}
	return u, &egress.RefusalError{Outcome: egress.Aborted, Message: why}
}

// keep records a stray for the next command.
func (n *Network) keep(at *outlet, e egress.Event) {
	u := makeUse(e)
	u.Host = strings.Clone(u.Host) // part of a request, which it would keep in memory
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

// take returns and clears the strays. mu is held.
func (s *strays) take() []box.Use {
	uses := s.uses
	if s.beyond.Connections > 0 {
		uses = append(uses, s.beyond)
	}
	*s = strays{}
	return uses
}
