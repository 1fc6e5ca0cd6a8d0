package warm

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
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
	who := s.spec.Owner
	if s.r.own {
		who = box.Self
	}
	as := func(f func() error) error { return As(who, f) }
	var listed []int
	processes := func() held.Processes {
		all := s.processes(holder, as)
		listed = all.All
		return all
	}
	sum := s.held.Look(as, processes, held.LookTime)
	var told held.Sum
	if s.weighed() || !s.held.Sure() {
		told = s.askHeld()
	}
	if s.weighed() {
		if listed == nil {
			listed = processes().All
		}
		sum.Memory = memory(as, listed, sum.Memory, told.Memory, p.memory)
	}
	if !s.held.Sure() { // nobody outside sees what init has waited for
		sum.Written = min(sum.Written+told.Written, held.TooMuch)
	}
	return sum
}

// processes are the sandbox's, without init, which lets nobody look at it and keeps nothing.
func (s *sandbox) processes(holder int, as func(func() error) error) held.Processes {
	// Root sees more than the owner: processes that nobody else can look at are not left out.
	all := held.Namespace(holder)
	if all.Space == "" {
		_ = as(func() error {
			all = held.Namespace(holder)
			return nil
		})
	}
	all.All = slices.DeleteFunc(all.All, func(pid int) bool { return pid == s.init })
	all.First, all.Starting = s.firsts() // afterwards: one that is listed is known by now
	return all
}

// weighed says whether nobody but this service sees to it that commands have no more memory than they may: their
// processes are this machine's, and in no control group.
func (s *sandbox) weighed() bool { return s.init != 0 && s.group == nil }

// memory is what a sandbox's processes have in memory, where no group counts it, of which unnamed is in files without
// a name that they have open. Such files, and segments of System V, may be mapped, and so be counted already:
// of the two counts the larger one holds.
func memory(as func(func() error) error, pids []int, unnamed, segments, limit int64) int64 {
	own, mapped := held.Memory(as, pids, limit-unnamed-segments)
	return own + max(mapped, unnamed+segments)
}

// firsts are the first processes of commands, and how many commands there are of which it is not
// known.
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

// askHeld is what init said last, which is asked again meanwhile: nobody waits for the answer.
func (s *sandbox) askHeld() held.Sum {
	s.mu.Lock()
	a := &s.asked
	ask := a.since.IsZero()
	a.tries++
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
			Deleted: int64(min(reply.Deleted, held.TooMuch)), Terminals: int(reply.Terminals), Memory: int64(min(reply.Shared, held.TooMuch)),
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
