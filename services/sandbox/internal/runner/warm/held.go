package warm

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// lookPatience is how long init may take to report what commands hold. An init that cannot answer, such as
// one stopped by a command, cannot manage the sandbox. The answer must also be missing lookTries times: the
// service itself may have been stopped.
const (
	lookPatience = 20 * time.Second
	lookTries    = 20
)

// Held implements box.Process. It inspects with the credentials of the owner of the sandbox's namespaces,
// so it needs no privilege. If the processes are on another machine, init inspects them. Holdings of
// concurrent commands count for each of them.
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

// as runs f with the credentials of the owner of the sandbox's namespaces.
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

// holder returns a process in the process namespace of the sandbox; zero if none is left. elsewhere means
// that the processes are on another machine.
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

// asked is the state of the questions to init about what commands hold. The sandbox's mu guards it.
type asked struct {
	sum    held.Sum  // the last answer
	number uint64    // of the last question
	since  time.Time // when it was asked; zero: it is answered
	tries  int       // how often the answer was awaited since
	valid  uint64    // answers to earlier questions are about ended commands
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

// hearHeld records init's answer.
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

// forgetHeld discards the answer: the commands have ended.
func (s *sandbox) forgetHeld() {
	s.held.Forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked.sum, s.asked.valid = held.Sum{}, s.asked.number+1
}
