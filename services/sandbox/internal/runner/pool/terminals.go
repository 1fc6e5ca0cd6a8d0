package pool

import (
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// openTerminals reports whether the sandbox's terminals are unlimited: they are the machine's.
func (s *sandbox) openTerminals() bool {
	return s.holder() == 0 || s.spec.Owner == box.Self && !s.r.own
}

// Terminals implements box.Process. It returns init's latest answer and asks again, without waiting.
func (p *process) Terminals() int {
	s := p.sb
	if !s.openTerminals() {
		return 0
	}
	s.mu.Lock()
	ask, terminals := !s.terminalsRequested, s.terminals
	s.terminalsRequested = true
	s.mu.Unlock()
	if ask {
		_ = s.send(wire.EncodeID(wire.Look, 0)) // the sandbox's end is seen elsewhere
	}
	return terminals
}

// hearTerminals records init's answer.
func (s *sandbox) hearTerminals(reply wire.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminalsRequested {
		return wire.ErrMalformed
	}
	s.terminalsRequested, s.terminals = false, int(reply.ID)
	return nil
}
