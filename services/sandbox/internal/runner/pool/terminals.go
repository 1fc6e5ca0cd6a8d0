package pool

import (
	"sync"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// openTerminals reports whether the sandbox's terminals are unlimited: they are the machine's.
func (s *sandbox) openTerminals() bool {
	return s.hold.holder() == 0 || s.spec.Owner == box.Self && !s.r.own
}

// Terminals implements box.Process. It returns init's latest answer and asks again, without waiting.
func (p *process) Terminals() int {
	s := p.sb
	if !s.openTerminals() {
		return 0
	}
	open, ask := s.terminals.look()
	if ask {
		_ = s.init.send(wire.EncodeID(wire.Look, 0)) // the sandbox's end is seen elsewhere
	}
	return open
}

// terminalCount is how many terminals are open in a sandbox, as its init says. It is safe for concurrent use.
type terminalCount struct {
	mu    sync.Mutex // guards what follows
	asked bool       // init has not answered yet
	open  int        // its last answer
}

// look returns the last answer. If ask is set, the caller must ask init again.
func (t *terminalCount) look() (open int, ask bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ask, t.asked = !t.asked, true
	return t.open, ask
}

// hear records init's answer.
func (t *terminalCount) hear(reply wire.Reply) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asked {
		return wire.ErrMalformed
	}
	t.asked, t.open = false, int(reply.ID)
	return nil
}

// forget drops the last answer: the terminals of the next command are to be counted.
func (t *terminalCount) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = 0
}
