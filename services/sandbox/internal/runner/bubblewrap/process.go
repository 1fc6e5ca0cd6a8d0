package bubblewrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// endTimeout bounds how long the kernel may take to end a killed sandbox.
const endTimeout = 30 * time.Second

// signalGroup has pidfd_send_signal reach the process group (Linux 6.9).
const signalGroup = 1 << 2

// process is a box.Process. Its sandbox is a process namespace: when its first
// process, init, ends, the kernel has ended all others in it.
type process struct {
	*stdio
	invocation *invocation
	cmd        *exec.Cmd // bubblewrap outside of the sandbox
	init       int       // the sandbox's first process, as the host counts
	group      cgroup.Group
	hide       func() error // undoes what was shown to bubblewrap
	log        *slog.Logger
	owner      box.Owner
	device     uint64 // of the file system that the workspace is on

	mu      sync.Mutex // guards what follows
	pidfd   int        // of init; -1 when there is none
	command int        // the command's process, as the host counts; zero until looked for
}

func (p *process) Stdin() io.WriteCloser { return p.in }
func (p *process) Stdout() io.ReadCloser { return p.out }
func (p *process) Stderr() io.ReadCloser { return p.errOut }

func (p *process) Resize(size box.TerminalSize) error {
	if p.terminal == nil {
		return box.ErrNoTerminal
	}
	return pty.Setsize(p.terminal, &pty.Winsize{Rows: size.Rows, Cols: size.Columns})
}

// Kill implements box.Process.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	}
}

// Signal implements box.Process. A command that has ended takes no harm.
func (p *process) Signal(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd < 0 {
		return nil
	}
	if p.command == 0 {
		p.command = findCommand(p.init)
	}
	if p.command == 0 {
		return nil // not executed yet, or ended
	}
	fd, err := unix.PidfdOpen(p.command, 0)
	if err != nil {
		return nil // ended
	}
	defer func() { _ = unix.Close(fd) }()
	if insideNumber(p.command) != commandNumber {
		return nil // ended, and its number was given to another process
	}
	return p.signalGroup(fd, unix.Signal(number))
}

// signalGroup signals the group of the command, which fd holds. bubblewrap makes
// the session before it makes the command, so the group is led by init, which the
// kernel keeps from every signal but SIGKILL and SIGSTOP; on a terminal the
// command leads its own.
func (p *process) signalGroup(fd int, s unix.Signal) error {
	group, err := unix.Getpgid(p.command)
	if err != nil {
		return nil //nolint:nilerr // it has ended
	}
	flags := signalGroup
	switch group {
	case p.init:
		fd = p.pidfd
	case p.command:
	default:
		flags = 0 // it joined another group: the command alone
	}
	err = unix.PidfdSendSignal(fd, s, nil, flags)
	if errors.Is(err, unix.EINVAL) && flags != 0 { // an older kernel: by number, while fd shows that it lives
		err = unix.Kill(-group, s)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send signal %d: %w", s, err)
	}
	return nil
}

// commandNumber is the command's process number inside: bubblewrap's init makes
// it first.
const commandNumber = 2

// findCommand looks through the host's processes: not every kernel lists a
// process's children.
func findCommand(init int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, d := range entries {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if parent(pid) == init && insideNumber(pid) == commandNumber {
			return pid
		}
	}
	return 0
}

// parent is the process that made a process, or took it over; zero if it is gone.
func parent(pid int) int {
	n, err := strconv.Atoi(statusLine(pid, "PPid:"))
	if err != nil {
		return 0
	}
	return n
}

// insideNumber is a process's number in its innermost namespace; zero if it is
// gone, or in no other namespace than the host's.
func insideNumber(pid int) int {
	f := strings.Fields(statusLine(pid, "NSpid:"))
	if len(f) < 2 {
		return 0
	}
	n, err := strconv.Atoi(f[len(f)-1])
	if err != nil {
		return 0
	}
	return n
}

func statusLine(pid int, key string) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// Wait implements box.Process.
func (p *process) Wait() box.Exit {
	_ = p.cmd.Wait() // the status comes by its own pipe, which tells more
	p.end()
	e := box.Exit{}
	e.Status, e.Executed = p.status()
	if p.group != nil {
		u := p.group.Usage()
		e.CPU, e.MaxMemory, e.OOMKilled = u.CPU, u.MaxMemoryBytes, u.OOMKills > 0
	}
	p.release()
	return e
}

// end kills what is left and waits until the kernel has ended it.
func (p *process) end() {
	p.Kill()
	if p.pidfd < 0 {
		return
	}
	poll := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	deadline := time.Now().Add(endTimeout)
	for {
		n, err := unix.Poll(poll, int(time.Until(deadline).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 {
			p.log.Error("a killed sandbox does not end", "pid", p.init)
		}
		return
	}
}

// status reads what bubblewrap said about the command's end. It says nothing when
// the command was never executed.
func (p *process) status() (code int, executed bool) {
	status := p.invocation.status
	if err := status.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, false
	}
	for d := json.NewDecoder(status); ; {
		var said struct {
			Code *int `json:"exit-code"`
		}
		if err := d.Decode(&said); err != nil {
			return 0, false
		}
		if said.Code != nil {
			return *said.Code, true
		}
	}
}

// release gives back what the kernel keeps for the sandbox. The output stays
// readable.
func (p *process) release() {
	p.mu.Lock()
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
		p.pidfd = -1
	}
	p.mu.Unlock()
	p.invocation.close()
	if err := p.hide(); err != nil {
		p.log.Error("cannot take down the folders of a command", "error", err)
	}
	if p.group != nil {
		if err := p.group.Remove(); err != nil {
			p.log.Error("cannot remove the control group of a command", "error", err)
		}
	}
}

// abandon undoes a start that failed.
func (p *process) abandon() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		p.Kill()
		_ = p.cmd.Wait()
		p.end()
	}
	p.release()
	p.closeOurs()
}
