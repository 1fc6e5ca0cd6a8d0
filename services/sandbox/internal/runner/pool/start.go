package pool

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// start starts a command in the sandbox, where it has a reserved place. It releases the place at the
// command's end, or on an error. errGone means that the sandbox had ended before.
func (s *sandbox) start(c box.Command) (*process, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if c.Enter != nil {
		c.Enter(s.out)
	}
	done := c.Begin()
	ends, err := newStdio(c, s.r.null)
	if err != nil {
		s.r.leave(s, true)
		return nil, fmt.Errorf("prepare the command's input and output: %w", err)
	}
	defer ends.closeChild()
	p := &process{
		stdio: ends, sb: s, pidfd: -1, dir: c.Dir, name: c.Argv[0], started: make(chan struct{}), ended: make(chan struct{}),
	}
	alone, err := s.commands.add(p)
	if err != nil {
		ends.closeOurs()
		s.r.leave(s, true)
		return nil, err
	}
	if alone {
		s.written.remember(s.hold.holder())
	}
	if err := p.ask(c, alone, done); err != nil {
		p.clear()
		p.closeOurs()
		return nil, err
	}
	return p, nil
}

// ask makes init start the command, and waits for done, unless that is nil, before the command runs.
// Meanwhile init starts a process that waits at a gate. Without control groups there are only process
// limits, and the sandbox may be elsewhere; then ask waits for done first. On an error nothing runs.
func (p *process) ask(c box.Command, alone bool, done func() error) (err error) {
	s := p.sb
	if s.group != nil && (!alone || lowered(c)) {
		if p.group, err = s.group.Below(strconv.FormatUint(p.id, 10), groupLimits(c)); err != nil {
			return err
		}
	}
	p.met = s.counted.before(alone, s.counts)
	if s.group == nil && done != nil {
		if err := done(); err != nil {
			return err
		}
		done = nil
	}
	gated := p.group != nil || done != nil
	gate, theirs, err := newGate(gated)
	if err != nil {
		return err
	}
	defer gate.close()
	request := p.request(s.r.path, c)
	request.Gate, request.ReportStart = gated, p.group != nil || c.Terminal != nil
	err = s.init.sendCommand(request, append(p.child(), theirs...))
	closeAll(theirs)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.kill() // init does not listen
		err = errGone
	}
	if err != nil {
		return err
	}
	p.closeChild()
	if request.ReportStart {
		err = p.awaitStart(gated)
	}
	if err == nil && gated {
		err = p.pass(gate, done)
	}
	if err != nil {
		gate.close()
		p.abandon()
	}
	return err
}

// pass lets the command through its gate once it is in its group and done has returned.
func (p *process) pass(gate *gate, done func() error) error {
	if p.group != nil {
		over, err := p.join()
		if err != nil {
			return err
		}
		if over {
			return p.gone()
		}
	}
	if done != nil {
		if err := done(); err != nil {
			return err
		}
	}
	if err := p.gone(); err != nil {
		return err
	}
	return gate.open()
}

// gone returns errGone if the sandbox has ended first.
func (p *process) gone() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return errGone
	}
	return nil
}

// join moves the command into its group, unless the command is over already: its folder may be missing, and
// others in the sandbox may kill it.
func (p *process) join() (over bool, err error) {
	p.mu.Lock()
	pidfd := p.pidfd
	p.mu.Unlock()
	if pidfd < 0 {
		return true, nil // init reported that at once
	}
	pid, err := hostPid(pidfd)
	if err == nil {
		err = p.group.Add(pid)
	}
	if err != nil && hasEnded(pidfd) {
		p.abandon() // init reports in time how it ended, or is ended
		return true, nil
	}
	return false, err
}

// hasEnded reports whether a process has ended, reaped or not.
func hasEnded(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// lowered reports whether a command has limits of its own.
func lowered(c box.Command) bool {
	l, all := c.Limits, c.Sandbox.Limits
	return l.MemoryBytes < all.MemoryBytes || l.Processes < all.Processes || l.CPUs < all.CPUs
}

// groupLimits returns the limits of a command's own group. It limits the processors only if the command's
// share is smaller than the sandbox's.
func groupLimits(c box.Command) cgroup.Limits {
	l := cgroup.Limits{MemoryBytes: c.Limits.MemoryBytes, Processes: c.Limits.Processes}
	if c.Limits.CPUs < c.Sandbox.Limits.CPUs {
		l.CPUs = c.Limits.CPUs
	}
	return l
}

func (p *process) request(path string, c box.Command) *wire.Command {
	w := &wire.Command{ID: p.id, Terminal: c.Terminal != nil, Dir: c.Dir, Argv: c.Argv, Env: c.Environment(path, box.HomePath, c.Dir)}
	w.Rows, w.Columns = terminalSize(c.Terminal)
	if p.sb.group == nil {
		w.AddressSpace, w.Processes = uint64(c.Limits.MemoryBytes), uint64(c.Limits.Processes)+p.sb.helpers()
	}
	if c.Limits.FileBytes < c.Sandbox.Limits.FileBytes {
		w.FileSize = uint64(c.Limits.FileBytes)
	}
	w.OpenFiles = uint64(c.Limits.OpenFiles)
	return w
}

// awaitStart waits until init reports that it started the command, or how that ended. It does not stop when
// the caller leaves: it would be unknown whether init still starts the command, so the whole sandbox would
// have to end.
func (p *process) awaitStart(gated bool) error {
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	select {
	case <-p.started:
	case <-late.C:
		if !gated {
			p.abandon() // its end is lost or known
			return nil
		}
		return fmt.Errorf("start the command: the sandbox's init did not answer within %v", startTimeout)
	}
	if gated {
		return p.gone()
	}
	return nil // it may have run
}

// abandon ends a command by closing its gate, and waits for its end.
func (p *process) abandon() {
	p.Kill()
	<-p.ended
}
