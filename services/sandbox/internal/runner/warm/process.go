package warm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// killTimeout is how long a killed command may take to end before its sandbox is
// ended with it.
const killTimeout = 3 * time.Second

// signalGroup has pidfd_send_signal reach the process group (Linux 6.9).
const signalGroup = 1 << 2

// process is a box.Process: a command in a sandbox.
type process struct {
	*stdio
	sb    *sandbox
	id    uint64
	group cgroup.Group  // of its own; nil for none
	met   cgroup.Counts // of the sandbox's group when it started

	started chan struct{} // closed when init has started it, or not
	ended   chan struct{} // closed when it has ended

	mu     sync.Mutex // guards what follows
	begun  bool       // started is closed
	fault  error      // why it was not started
	live   bool       // it was started, and not waited for since
	pidfd  int        // -1 when there is none, as of a sandbox that is elsewhere
	killed bool
	watch  *time.Timer // ends the sandbox of one that cannot be killed
	reply  wire.Reply  // Exited; valid once ended is closed
	lost   bool        // the sandbox ended first; valid once ended is closed
	oom    bool        // of one that was lost
}

func (p *process) Stdin() io.WriteCloser { return p.in }
func (p *process) Stdout() io.ReadCloser { return p.out }
func (p *process) Stderr() io.ReadCloser { return p.errOut }

func (p *process) Resize(size box.TerminalSize) error {
	if p.terminal == nil {
		return box.ErrNoTerminal
	}
	if p.sb.init == 0 {
		return p.sb.send(wire.EncodeResize(p.id, size.Rows, size.Columns))
	}
	return terminal.ResizeFile(p.terminal, size.Rows, size.Columns)
}

// start starts a command in the sandbox, in which it has a place booked: it gives
// that back at its end, or on an error. errGone says that the sandbox had ended
// before.
func (s *sandbox) start(c box.Command) (*process, error) {
	ends, err := newStdio(c, s.r.null)
	if err != nil {
		s.r.leave(s, true)
		return nil, fmt.Errorf("prepare the command's input and output: %w", err)
	}
	defer ends.closeChild()
	p := &process{stdio: ends, sb: s, pidfd: -1, started: make(chan struct{}), ended: make(chan struct{})}
	s.turn.Lock()
	defer s.turn.Unlock()
	alone, err := s.enlist(p)
	if err != nil {
		ends.closeOurs()
		s.r.leave(s, true)
		return nil, err
	}
	request := p.request(s.r.path, c)
	if s.group != nil && (!alone || lowered(c)) {
		request.Hold = true
		p.group, err = s.group.Below(strconv.FormatUint(p.id, 10), groupLimits(c))
		if err != nil {
			p.clear()
			ends.closeOurs()
			return nil, err
		}
	}
	p.met = s.countsBefore(alone)
	// While what must be done before the command runs is being done, init starts it and
	// holds it. Without control groups process limits are all there is, and sandboxes may
	// be elsewhere: there it is done first.
	apart := s.group == nil || c.Before == nil
	if !request.Hold && apart {
		if err := c.Await(); err != nil {
			p.clear()
			ends.closeOurs()
			return nil, err
		}
	}
	request.Hold = request.Hold || !apart
	if err := s.sendCommand(request, ends.child()); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errGone // or as good as that
		}
		return nil, p.giveUp(err) // nothing was started
	}
	ends.closeChild()
	if err := p.letGo(c, request.Hold); err != nil {
		return nil, p.giveUp(err)
	}
	return p, nil
}

// enlist takes a place among the sandbox's commands, and says whether it is the
// only one.
func (s *sandbox) enlist(p *process) (alone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doomed {
		return false, errGone
	}
	s.next++
	p.id = s.next
	alone = len(s.commands) == 0
	s.commands[p.id] = p
	return alone, nil
}

func (s *sandbox) forget(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.commands, p.id)
}

// lowered says whether a command has limits of its own.
func lowered(c box.Command) bool {
	l, all := c.Limits, c.Sandbox.Limits
	return l.MemoryBytes < all.MemoryBytes || l.Processes < all.Processes || l.CPUs < all.CPUs
}

// groupLimits are those of a command's own group. It has its own share of the
// processors only when that is smaller than the sandbox's.
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
	if c.Limits.OpenFiles < c.Sandbox.Limits.OpenFiles {
		w.OpenFiles = uint64(c.Limits.OpenFiles)
	}
	return w
}

// letGo has init let a held command go, once it is in its group and all is done that
// must be before it runs, and waits until init has started it. One without a group of its
// own need not have been started to be let go: init does one thing after the other.
func (p *process) letGo(c box.Command, held bool) error {
	if !held {
		return p.awaitStart(c, false)
	}
	if p.group == nil {
		err := p.goAhead(c)
		// Also after an error: who ends it must know whether it was started.
		if fault := p.awaitStart(c, err != nil); fault != nil {
			return fault
		}
		return err
	}
	if err := p.awaitStart(c, true); err != nil {
		return err
	}
	p.mu.Lock()
	pidfd := p.pidfd
	p.mu.Unlock()
	pid, err := hostPid(pidfd)
	if err == nil {
		err = p.group.Add(pid)
	}
	if err == nil {
		err = p.goAhead(c)
	}
	return err
}

// goAhead does what must be done before a held command runs, and has init let it go.
func (p *process) goAhead(c box.Command) error {
	if err := c.Await(); err != nil {
		return err
	}
	return p.sb.send(wire.EncodeID(wire.Go, p.id))
}

// awaitStart waits until init has started the command, which has not run yet when it is
// held. The caller's going away ends no wait: the sandbox, with all that runs in it,
// would have to go as well, for nobody could tell whether init starts the command yet.
func (p *process) awaitStart(c box.Command, held bool) error {
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	select {
	case <-p.started:
	case <-p.ended: // with the sandbox
		if held {
			return errGone
		}
		return nil // it may have run
	case <-late.C:
		return fmt.Errorf("start the command: the sandbox's init did not answer within %v", startTimeout)
	}
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	var cannot *startError
	if errors.As(fault, &cannot) {
		return cannot.explain(c)
	}
	return fault
}

// giveUp ends a command whose start failed, and waits for its end.
func (p *process) giveUp(err error) error {
	var cannot *box.StartError
	if !errors.As(err, &cannot) { // otherwise nothing was started
		p.Kill()
		if !p.hasBegun() {
			p.sb.kill() // it cannot be told whether init will start it yet
		}
		<-p.ended
	}
	p.clear()
	p.closeOurs()
	return err
}

func (p *process) hasBegun() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// startError is init's word that a command cannot be executed.
type startError struct {
	errno  unix.Errno
	folder bool
}

func (f *startError) Error() string { return f.errno.Error() }

func (f *startError) explain(c box.Command) error {
	switch {
	case f.folder:
		return &box.StartError{Message: "cannot enter the folder " + c.Dir + ": " + f.errno.Error()}
	case f.errno == unix.E2BIG:
		return &box.StartError{Message: "the arguments and the environment are too long together"}
	}
	return &box.StartError{Message: "cannot execute " + c.Argv[0] + ": " + f.errno.Error()}
}

// hear takes init's word. An error says that it makes no sense.
func (p *process) hear(reply wire.Reply, files *[]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case reply.Kind == wire.Started && !p.begun && (len(*files) >= 1 || p.sb.init == 0):
		if p.sb.init != 0 {
			p.pidfd = (*files)[0]
			*files = (*files)[1:]
		}
		p.live = true
		if p.out == nil { // a terminal
			if len(*files) != 1 || unix.SetNonblock((*files)[0], true) != nil {
				return wire.ErrMalformed
			}
			p.setTerminal(os.NewFile(uintptr((*files)[0]), "terminal"))
			*files = nil
		}
	case reply.Kind == wire.Failed && !p.begun:
		p.fault = &startError{unix.Errno(reply.Errno), reply.Dir}
	case reply.Kind == wire.Exited && p.live && p.reply.Kind == 0:
		p.reply = reply
		close(p.ended)
		return nil
	default:
		return wire.ErrMalformed
	}
	p.begun = true
	close(p.started)
	if p.killed {
		p.strike()
	}
	return nil
}

// lose notes that the sandbox has ended. ooms is its group's count of kills at last;
// starved says that it ended for want of memory itself.
func (p *process) lose(ooms int64, starved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reply.Kind != 0 {
		return // it had ended before
	}
	p.lost, p.oom = true, starved || ooms > p.met.OOMKills
	if p.out == nil { // a terminal that never was
		p.out = io.NopCloser(strings.NewReader(""))
	}
	p.reply.Kind = wire.Exited
	close(p.ended)
}

// Kill implements box.Process.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return
	}
	p.killed = true
	p.strike()
}

// strike kills the command; init kills, or the group does, what it leaves. mu is
// held.
func (p *process) strike() {
	if p.reply.Kind != 0 || !p.live {
		return
	}
	if p.group != nil {
		_ = p.group.Kill()
	}
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	} else {
		_ = p.sb.send(wire.EncodeSignal(p.id, uint32(unix.SIGKILL))) // the watch sees to it that it ends
	}
	if p.watch == nil {
		p.watch = time.AfterFunc(killTimeout, p.sb.kill)
	}
}

// Signal implements box.Process. A command that has ended takes no harm.
func (p *process) Signal(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live || p.reply.Kind != 0 {
		return nil
	}
	if p.pidfd < 0 {
		return p.sb.send(wire.EncodeSignal(p.id, uint32(number)))
	}
	s := unix.Signal(number)
	err := unix.PidfdSendSignal(p.pidfd, s, nil, signalGroup)
	if errors.Is(err, unix.EINVAL) { // an older kernel: by number, while the descriptor shows that it lives
		pid, gone := hostPid(p.pidfd)
		if gone != nil {
			return nil // it has ended
		}
		err = unix.Kill(-pid, s)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send signal %d: %w", s, err)
	}
	return nil
}

// Ended implements box.Process.
func (p *process) Ended() <-chan struct{} { return p.ended }

// Wait implements box.Process.
func (p *process) Wait() box.Exit {
	<-p.ended
	p.mu.Lock()
	reply, lost := p.reply, p.lost
	if p.watch != nil {
		p.watch.Stop()
	}
	p.mu.Unlock()
	e := box.Exit{Lost: lost, OOMKilled: p.oom, CPU: reply.CPU, MaxMemory: reply.MaxRSS}
	if status := unix.WaitStatus(reply.Status); !lost && status.Signaled() {
		e.Signal = int(status.Signal())
	} else if !lost {
		e.Status = status.ExitStatus()
	}
	if !lost {
		if !reply.Swept && p.group == nil {
			p.sb.sweep()
		}
		met := p.sb.countsAfter(reply.Swept).Since(p.met)
		e.OOMKilled = met.OOMKills > 0 && p.group == nil
		e.Throttled, e.Refused = met.Throttled, met.Refused
	}
	if p.group != nil {
		_ = p.group.Kill()
		if u := p.group.Usage(); !lost {
			e.OOMKilled, e.MaxMemory = u.OOMKills > 0, max(u.MaxMemoryBytes, e.MaxMemory)
			met := p.group.Counts()
			e.Throttled, e.Refused = max(met.Throttled, e.Throttled), max(met.Refused, e.Refused)
		}
	}
	p.clear()
	return e
}

// clear gives back what the machine keeps for the command. The output stays
// readable.
func (p *process) clear() {
	p.mu.Lock()
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
		p.pidfd = -1
	}
	p.live = false
	lost := p.lost
	p.mu.Unlock()
	if p.group != nil && !lost { // otherwise it went with its sandbox's
		if err := p.group.Remove(); err != nil {
			p.sb.r.log.Error("cannot remove the control group of a command", "error", err)
		}
	}
	p.sb.forget(p)
	p.sb.r.leave(p.sb, true)
}
