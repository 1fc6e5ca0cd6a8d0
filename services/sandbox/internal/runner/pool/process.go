package pool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// killTimeout is how long a killed command may take to end before its sandbox is ended.
const killTimeout = 3 * time.Second

// signalGroup makes pidfd_send_signal signal the process group (Linux 6.9).
const signalGroup = 1 << 2

// frozenPause is the shortest time between two checks of a killed command's time, in a sandbox that was
// frozen meanwhile.
const frozenPause = 50 * time.Millisecond

// process is a box.Process: a command in a sandbox.
type process struct {
	*stdio
	sb     *sandbox
	id     uint64
	group  cgroup.Group  // its own; nil for none
	met    cgroup.Counts // of the sandbox's group when it started
	dir    string        // of the command
	name   string
	beside bool // whether another command was in the sandbox meanwhile; guarded by the mu of the sandbox's commands

	started chan struct{} // closed when init has reported its start or its end
	ended   chan struct{} // closed when it has ended

	mu     sync.Mutex // guards what follows
	begun  bool       // started is closed
	live   bool       // its start was reported and it is not reaped
	pidfd  int        // -1 if there is none, as for a sandbox elsewhere
	killed bool
	watch  *time.Timer   // ends the sandbox if the command cannot be killed
	stood  time.Duration // frozen time of the sandbox that the watch has added
	reply  wire.Reply    // Exited or Failed; valid once ended is closed
	lost   bool          // the sandbox ended first; valid once ended is closed
	oom    bool          // of one that was lost
}

func (p *process) Stdin() io.WriteCloser { return p.in }
func (p *process) Stdout() io.ReadCloser { return p.out }
func (p *process) Stderr() io.ReadCloser { return p.errOut }

func (p *process) Resize(size box.TerminalSize) error {
	if p.terminal == nil {
		return box.ErrNoTerminal
	}
	if p.sb.elsewhere() {
		if err := p.sb.init.send(wire.EncodeResize(p.id, size.Rows, size.Columns)); !errors.Is(err, errGone) {
			return err
		}
		return nil // it has ended
	}
	return terminal.ResizeFile(p.terminal, size.Rows, size.Columns)
}

// explain returns why init could not execute the command, and whether the limit of processes was the
// reason, which the sandbox's group then has counted.
func (p *process) explain(refused int64) (why string, crowded bool) {
	errno := unix.Errno(p.reply.Errno)
	switch {
	case p.reply.Dir:
		return box.CannotEnter(p.dir, errno), false
	case errno == unix.E2BIG, errno == unix.ENAMETOOLONG && len(p.name) < unix.PathMax: // gVisor returns this for a command that is too long
		return "the arguments and the environment are too long together", false
	case errno == unix.EAGAIN && refused > 0:
		return fmt.Sprintf("the command was not started: other commands in the workspace use all %d allowed processes and threads. Wait until some end, or end some", p.sb.spec.Limits.Processes), true
	case p.lacksTerminal():
		return "the command was not started: other commands use all allowed terminals. Wait until some end, or end some", false
	case errno == unix.EAGAIN:
		return "the command was not started: the machine has no process or thread left for it. Try again later", false
	}
	return "cannot execute " + p.name + ": " + errno.Error(), false
}

// lacksTerminal reports whether the command was not started because it could get no terminal.
func (p *process) lacksTerminal() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reply.Kind == wire.Failed && unix.Errno(p.reply.Errno) == unix.ENOSPC // only a terminal can fail with ENOSPC; execve does not
}

// handle processes a message of init. An error means that the message makes no sense.
func (p *process) handle(reply wire.Reply, files *[]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case reply.Kind == wire.Started && !p.begun && (len(*files) >= 1 || p.sb.elsewhere()):
		if !p.sb.elsewhere() {
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
		p.begin()
		if p.killed {
			p.strike()
		}
	case (reply.Kind == wire.Exited || reply.Kind == wire.Failed) && p.reply.Kind == 0:
		p.finish(reply)
	default:
		return wire.ErrMalformed
	}
	return nil
}

// begin wakes the waiters for init's report. mu is held.
func (p *process) begin() {
	if !p.begun {
		p.begun = true
		close(p.started)
	}
}

// finish records the end. mu is held.
func (p *process) finish(reply wire.Reply) {
	p.reply = reply
	if p.watch != nil {
		p.watch.Stop()
	}
	if p.out == nil { // a terminal that was never made
		p.out = io.NopCloser(strings.NewReader(""))
	}
	close(p.ended)
	p.begin()
}

// lose records that the sandbox has ended. ooms is its group's final count of kills; starved means that the
// sandbox itself ended for want of memory.
func (p *process) lose(ooms int64, starved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reply.Kind != 0 {
		return // it had ended before
	}
	p.lost, p.oom = true, starved || ooms > p.met.OOMKills
	p.finish(wire.Reply{Kind: wire.Exited})
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

// strike kills the command, or marks it to be killed when init reports its start. Init or the group kills
// its remains. mu is held.
func (p *process) strike() {
	if p.reply.Kind != 0 {
		return
	}
	if p.watch == nil {
		_, p.stood = p.sb.stood.read()
		p.watch = time.AfterFunc(killTimeout, p.overdue)
	}
	if !p.live {
		return
	}
	if p.group != nil {
		_ = p.group.Kill()
	}
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	} else {
		_ = p.sb.init.send(wire.EncodeSignal(p.id, uint32(unix.SIGKILL))) // the watch enforces its end
	}
}

// overdue ends the sandbox of a killed command that has not ended in time. Frozen time does not count.
func (p *process) overdue() {
	if p.late() {
		p.sb.kill()
	}
}

// late reports whether a killed command has had its time. If not, and if it has not ended, the watch is
// restarted.
func (p *process) late() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reply.Kind != 0 {
		return false
	}
	frozen, stood := p.sb.stood.read()
	if !frozen && stood == p.stood {
		return true
	}
	p.watch.Reset(max(stood-p.stood, frozenPause))
	p.stood = stood
	return false
}

// Signal implements box.Process. An ended command is not harmed.
func (p *process) Signal(number int) error {
	<-p.started
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live || p.reply.Kind != 0 {
		return nil
	}
	if p.pidfd < 0 {
		return p.sb.init.send(wire.EncodeSignal(p.id, uint32(number)))
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
	if errors.Is(err, unix.ESRCH) { // it has ended, or has no group of its own yet
		err = unix.PidfdSendSignal(p.pidfd, s, nil, 0)
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
		now := p.sb.counts()
		p.sb.counted.after(now, func() bool { return reply.Swept && len(p.sb.commands.list()) == 1 })
		met := now.Since(p.met)
		e.OOMKilled = met.OOMKills > 0 && p.group == nil
		of := &e.Met
		if p.sb.commands.hadOthers(p) {
			of = &e.Common
		}
		of.Throttled, of.Refused = met.Throttled, met.Refused
	}
	if p.group != nil {
		_ = p.group.Kill()
		if u := p.group.Usage(); !lost {
			e.OOMKilled, e.MaxMemory = u.OOMKills > 0, max(u.MaxMemoryBytes, e.MaxMemory)
			met := p.group.Counts()
			e.Throttled, e.Refused = max(met.Throttled, e.Throttled), max(met.Refused, e.Refused)
		}
	}
	if e.OOMKilled {
		e.ScratchBytes = p.sb.scratchBytes()
	}
	if reply.Kind == wire.Failed {
		e.NotStarted, e.Crowded = p.explain(e.Refused + e.Common.Refused)
	}
	p.clear()
	return e
}

// clear releases the machine's resources for the command. The output stays readable.
func (p *process) clear() {
	p.mu.Lock()
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
		p.pidfd = -1
	}
	p.live = false
	lost := p.lost
	p.mu.Unlock()
	if p.group != nil && !lost { // otherwise it was removed with its sandbox's
		if err := p.group.Remove(); err != nil {
			p.sb.r.log.Error("cannot remove the control group of a command", "error", err)
		}
	}
	if p.sb.commands.remove(p) {
		p.sb.terminals.forget()
	}
	p.sb.r.leave(p.sb, true)
}
