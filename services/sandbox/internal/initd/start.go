package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// command is a command that runs.
type command struct {
	id      uint64
	fresh   bool // traced, and not seen yet before its first instruction
	hold    bool // held for the service to let it go
	stopped bool // it stands before its first instruction, held
	cpu     int64
	maxRSS  int64
}

// starter starts commands and knows those that run.
type starter struct {
	long     func(packet []byte) ([]byte, error) // what a Long is about that has no file; nil where all have
	commands map[int]*command
}

// serve does what the service asks for, until it is gone.
func (s *starter) serve() error {
	packet, rights := make([]byte, wire.MaxPacket), make([]byte, unix.CmsgSpace(4*4))
	poll := []unix.PollFd{{Fd: int32(link), Events: unix.POLLIN}, {Fd: bell, Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if poll[1].Revents != 0 {
			if err := s.reap(); err != nil {
				return err
			}
		}
		if poll[0].Revents == 0 {
			continue
		}
		n, nr, _, _, err := unix.Recvmsg(link, packet, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err // the service is gone
		}
		if err := s.handle(packet[:n], rights[:nr]); err != nil {
			return err
		}
	}
}

func (s *starter) handle(packet, rights []byte) error {
	files, err := parseFiles(rights)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			_ = unix.Close(f)
		}
	}()
	streams := files
	switch wire.Kind(packet[0]) {
	case wire.Go:
		id, err := wire.DecodeID(packet)
		if err != nil {
			return err
		}
		return s.release(id)
	case wire.Signal:
		return s.signal(packet)
	case wire.Listen:
		return listen()
	case wire.Long:
		if s.long != nil {
			if packet, err = s.long(packet); err != nil {
				return err
			}
			break
		}
		if len(files) == 0 {
			return wire.ErrMalformed
		}
		streams = files[1:]
		if packet, err = readAll(files[0]); err != nil {
			return err
		}
	}
	c, err := wire.DecodeCommand(packet)
	if err != nil {
		return err
	}
	if want := 3; !c.Terminal && len(streams) != want {
		return fmt.Errorf("%d files beside a command, not %d", len(streams), want)
	}
	return s.start(c, streams)
}

// signal sends a signal to a command's process group. One that has ended takes no
// harm: it is not reaped meanwhile, so its number is nobody else's.
func (s *starter) signal(packet []byte) error {
	id, number, err := wire.DecodeSignal(packet)
	if err != nil {
		return err
	}
	for pid, c := range s.commands {
		if c.id == id {
			_ = unix.Kill(-pid, unix.Signal(number))
		}
	}
	return nil
}

func parseFiles(rights []byte) ([]int, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(wire.ErrMalformed, err)
	}
	return unix.ParseUnixRights(&messages[0])
}

func readAll(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	b := make([]byte, st.Size)
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		at += n
	}
	return b, nil
}

// start starts a command and says so. What stands in the way of one command is no
// error. One that is held, or has limits of its own, is traced: the kernel stops it
// before its first instruction, and whoever reaps hears of it.
func (s *starter) start(c *wire.Command, streams []int) error {
	attr := &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Sys: &syscall.SysProcAttr{Setsid: true}}
	master := -1
	if c.Terminal {
		var slave int
		var err error
		if master, slave, err = terminal.Open(c.Rows, c.Columns); err != nil {
			return send(failure(c.ID, err, false))
		}
		defer func() { _, _ = unix.Close(master), unix.Close(slave) }()
		streams = []int{slave, slave, slave}
		attr.Sys.Setctty = true // of its descriptor 0
	}
	for _, f := range streams {
		attr.Files = append(attr.Files, uintptr(f))
	}
	if err := checkFolder(c.Dir); err != nil {
		return send(failure(c.ID, err, true))
	}
	limited := c.AddressSpace > 0 || c.Processes > 0 || c.FileSize > 0 || c.OpenFiles > 0
	pidfd := -1
	attr.Sys.Ptrace, attr.Sys.PidFD = c.Hold || limited, &pidfd

	pid, err := execute(c, attr)
	if err != nil {
		return send(failure(c.ID, err, false))
	}
	defer func() { _ = unix.Close(pidfd) }()
	s.commands[pid] = &command{id: c.ID, fresh: attr.Sys.Ptrace, hold: c.Hold}
	if err := lowerLimits(pid, c); err != nil {
		return err
	}
	files := []int{pidfd}
	if c.Terminal {
		files = append(files, master)
	}
	return send(wire.Reply{Kind: wire.Started, ID: c.ID}, files...)
}

// checkFolder tells a folder that cannot be entered from a program that cannot be
// executed: starting does not.
func checkFolder(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return unix.Access(dir, unix.X_OK)
}

// execute finds the program as a shell would, and starts it.
func execute(c *wire.Command, attr *syscall.ProcAttr) (pid int, err error) {
	name := c.Argv[0]
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = candidates[:0]
		for _, dir := range strings.Split(lookup(c.Env, "PATH"), ":") {
			if path := dir + "/" + name; unix.Access(path, unix.F_OK) == nil {
				candidates = append(candidates, path)
			}
		}
	}
	err = unix.ENOENT
	for _, path := range candidates {
		pid, fault := syscall.ForkExec(path, c.Argv, attr) //nolint:gosec // what it is for
		if errors.Is(fault, unix.ENOEXEC) {                // a script without a first line
			pid, fault = syscall.ForkExec("/bin/sh", append([]string{"sh", path}, c.Argv[1:]...), attr) //nolint:gosec // as above
		}
		if fault == nil {
			return pid, nil
		}
		if !errors.Is(fault, unix.ENOENT) && !errors.Is(fault, unix.ENOTDIR) {
			err = fault
		}
		if !errors.Is(fault, unix.ENOENT) && !errors.Is(fault, unix.ENOTDIR) && !errors.Is(fault, unix.EACCES) {
			break
		}
	}
	return 0, err
}

func lookup(env []string, key string) string {
	value := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			value = v
		}
	}
	return value
}

// lowerLimits lowers the limits of a command that has not run an instruction yet: it is
// traced, so it stops before the first one. It need not live any more.
func lowerLimits(pid int, c *wire.Command) error {
	for _, l := range []struct {
		id    int
		value uint64
	}{{unix.RLIMIT_AS, c.AddressSpace}, {unix.RLIMIT_NPROC, c.Processes}, {unix.RLIMIT_FSIZE, c.FileSize}, {unix.RLIMIT_NOFILE, c.OpenFiles}} {
		if l.value == 0 {
			continue
		}
		if err := unix.Prlimit(pid, l.id, &unix.Rlimit{Cur: l.value, Max: l.value}, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("lower a command's limits: %w", err)
		}
	}
	return nil
}

// release lets a held command go, at once or as soon as it stands before its first
// instruction.
func (s *starter) release(id uint64) error {
	for pid, c := range s.commands {
		if c.id == id && c.hold {
			c.hold = false
			if c.stopped {
				return detach(pid, 0)
			}
			return nil // see stopped
		}
	}
	return nil // killed meanwhile
}

// detach ends the tracing of a process, which goes on with a signal. It need not
// live any more.
func detach(pid int, signal unix.Signal) error {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(signal), 0, 0)
	if e != 0 && e != unix.ESRCH {
		return fmt.Errorf("let a process go: %w", e)
	}
	return nil
}

func failure(id uint64, err error, dir bool) wire.Reply {
	var e syscall.Errno
	if !errors.As(err, &e) {
		fmt.Fprintln(os.Stderr, "init:", err)
		e = unix.EIO
	}
	return wire.Reply{Kind: wire.Failed, ID: id, Errno: uint32(e), Dir: dir}
}
