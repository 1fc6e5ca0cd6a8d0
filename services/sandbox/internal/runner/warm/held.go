package warm

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// lookPatience is how long init may take to say what commands hold: one that is kept from it, as by a
// command that has it stand still, cannot see to the sandbox. It is asked for as often meanwhile as
// lookTries says: the service may have stood still itself.
const (
	lookPatience = 20 * time.Second
	lookTries    = 20
)

// Held implements box.Process. It looks with the credentials of whom the
// sandbox's namespaces belong to, so that it needs no privilege; init looks where the processes are
// on another machine. What a command holds that runs beside this one counts for both.
func (p *process) Held() held.Sum {
	s := p.sb
	holder, elsewhere := s.holder()
	switch {
	case elsewhere:
		return s.askHeld()
	case holder == 0:
		return held.Sum{}
	}
	sum := s.held.Look(s.as, func() held.Processes { return s.processes(holder) }, held.LookTime)
	if !s.held.Sure() { // only init sees the counts of processes that it has reaped
		sum.Written = min(sum.Written+s.askHeld().Written, held.TooMuch)
	}
	return sum
}

// as does something with the credentials of whom the sandbox's namespaces belong to.
func (s *sandbox) as(f func() error) error {
	if s.r.own {
		return f()
	}
	return As(s.spec.Owner, f)
}

// processes returns the sandbox's, without init, which cannot be inspected and keeps nothing.
func (s *sandbox) processes(holder int) held.Processes {
	// Root sees more than the owner does, including processes that no other user can inspect.
	all := held.Namespace(holder)
	if all.Space == "" {
		_ = s.as(func() error {
			all = held.Namespace(holder)
			return nil
		})
	}
	all.All = slices.DeleteFunc(all.All, func(pid int) bool { return pid == s.init })
	all.First, all.Starting = s.firsts() // afterwards, so that every listed process is known by now
	return all
}

// firsts returns the known first processes of commands, and for how many commands it is unknown.
func (s *sandbox) firsts() (known []int, unknown int) {
	s.mu.Lock()
	commands := slices.Collect(maps.Values(s.commands))
	s.mu.Unlock()
	for _, p := range commands {
		p.mu.Lock()
		pid, err := 0, errGone
		if p.pidfd >= 0 {
			pid, err = hostPid(p.pidfd)
		}
		ended := p.reply.Kind != 0
		p.mu.Unlock()
		switch {
		case err == nil:
			known = append(known, pid)
		case !ended:
			unknown++
		}
	}
	return known, unknown
}

// holder is a process of the namespace whose processes hold the sandbox's files; zero when
// there is none any more. Elsewhere says that they are on another machine.
func (s *sandbox) holder() (pid int, elsewhere bool) {
	if s.init != 0 {
		return s.init, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.body.(Holder); ok {
		return h.Holder(), false
	}
	return 0, true
}

// asked is what init was asked of what commands hold, and what it said. The sandbox's mu is held
// where it is used.
type asked struct {
	sum    held.Sum  // as it said last
	number uint64    // of the last question
	since  time.Time // when that was asked; zero: it is answered
	tries  int       // how often the answer was waited for since
	valid  uint64    // answers to earlier questions are about commands that have ended
}

// askHeld returns init's latest answer and asks again meanwhile, without waiting.
func (s *sandbox) askHeld() held.Sum {
	s.mu.Lock()
	a := &s.asked
	ask := a.since.IsZero()
	a.tries++
	if !s.frozen.IsZero() {
		a.tries = 0 // it cannot answer
	}
	late := !ask && a.tries > lookTries && time.Since(a.since) > lookPatience
	if ask {
		a.number++
		a.since, a.tries = time.Now(), 0
	}
	sum, question := a.sum, wire.EncodeID(wire.Look, a.number)
	s.mu.Unlock()
	var err error
	if ask {
		err = s.send(question)
	}
	if late || err != nil && !errors.Is(err, errGone) {
		s.r.log.Error("the init of a sandbox does not say what commands hold: ending it", "error", err)
		s.kill()
	}
	return sum
}

// hearHeld notes what init says that commands hold.
func (s *sandbox) hearHeld(reply wire.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &s.asked
	if a.since.IsZero() || reply.ID != a.number {
		return wire.ErrMalformed
	}
	a.since = time.Time{}
	if reply.ID >= a.valid {
		a.sum = held.Sum{
			Deleted: int64(min(reply.Deleted, held.TooMuch)), Terminals: int(reply.Terminals),
			Unsure: int(reply.Unsure), Written: int64(min(reply.Written, held.TooMuch)),
		}
	}
	return nil
}

// forgetHeld forgets what commands held: they have ended.
func (s *sandbox) forgetHeld() {
	s.held.Forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked.sum, s.asked.valid = held.Sum{}, s.asked.number+1
}
