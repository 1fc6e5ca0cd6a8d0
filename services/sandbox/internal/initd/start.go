package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// reportAfter is how long init waits before it reports the start of a command. A command that ends earlier is
// reported only once. A caller that waits for the start is told at once.
const reportAfter = 2 * time.Millisecond

// command is a running command.
type command struct {
	id       uint64
	request  request // read by the child
	child    *child
	reported bool // whether its start was reported
	terminal int  // master of its terminal, until the start is reported; none: it has no terminal
	line     int  // slave of its terminal, until it has ended: it may close and reopen its own; none: no terminal
	cpu      int64
	maxRSS   int64
}

// starter starts commands and tracks those that run.
type starter struct {
	long       func(packet []byte) ([]byte, error) // returns the Start of a Long without a file; nil where all have one
	commands   map[int]*command
	unreported int       // commands whose start is not reported yet
	reportAt   time.Time // when to report it
	garbage    int       // approximate bytes since the last collection
	putOff     int       // how often the collection was put off
	threads    int       // threads of the runtime, made before it needs them
}

// serve handles the service's requests until it is gone.
func (s *starter) serve() error {
	packet, rights := make([]byte, wire.MaxPacket), make([]byte, unix.CmsgSpace(5*4))
	poll := []unix.PollFd{{Fd: int32(link), Events: unix.POLLIN}, {Fd: bell, Events: unix.POLLIN}}
	for {
		if err := s.collect(); err != nil {
			return err
		}
		_, err := unix.Poll(poll, s.patience())
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if err != nil || poll[1].Revents != 0 { // the bell interrupts the read, too
			if err := s.reap(); err != nil {
				return err
			}
		}
		if s.unreported > 0 && !time.Now().Before(s.reportAt) {
			if err := s.reportStarted(); err != nil {
				return err
			}
		}
		if err != nil || poll[0].Revents == 0 {
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

// patience returns the longest wait, in milliseconds.
func (s *starter) patience() int {
	switch {
	case s.unreported > 0:
		return int(max(time.Until(s.reportAt)+time.Millisecond-1, 0) / time.Millisecond)
	case s.putOff > 0:
		return collectPause
	}
	return -1
}

// reportStarted reports the starts that are not reported yet. If that fails, it retries later.
func (s *starter) reportStarted() error {
	s.reportAt = time.Now().Add(reportAfter)
	for pid, c := range s.commands {
		if !c.reported {
			if err := s.reportStart(pid, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportStart reports a command's start and passes its pidfd and terminal. It does nothing while that is
// impossible: a user's files in transit in sockets are limited, and commands may use up the limit.
func (s *starter) reportStart(pid int, c *command) error {
	pidfd, err := unix.PidfdOpen(pid, 0) // it is not reaped yet
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(pidfd) }()
	files := []int{pidfd}
	if c.terminal != none {
		files = append(files, c.terminal)
	}
	switch err := send(wire.Reply{Kind: wire.Started, ID: c.id}, files...); {
	case errors.Is(err, unix.ETOOMANYREFS):
		return nil
	case err != nil:
		return err
	}
	s.markReported(c)
	return nil
}

func (s *starter) markReported(c *command) {
	if c.reported {
		return
	}
	c.reported = true
	s.unreported--
	closeAll(c.terminal)
	c.terminal = none
}

func closeAll(files ...int) {
	for _, f := range files {
		if f != none {
			_ = unix.Close(f)
		}
	}
}

func (s *starter) handle(packet, rights []byte) error {
	files, err := parseFiles(rights)
	if err != nil {
		return err
	}
	defer closeAll(files...)
	switch wire.Kind(packet[0]) {
	case wire.Signal:
		return s.signal(packet)
	case wire.Listen:
		return listen()
	case wire.Look:
		return s.tellTerminals()
	}
	r, streams, err := s.request(packet, files)
	if err != nil {
		return err
	}
	held := false // whether a running command holds the request
	defer func() {
		if !held {
			r.release()
		}
	}()
	c, err := wire.DecodeCommand(r.packet)
	if err != nil {
		return err
	}
	s.noteGarbage(r, c)
	want, gate := 0, none
	if !c.Terminal {
		want = 3
	}
	if c.Gate && len(streams) == want+1 {
		streams, gate = streams[:want], streams[want]
	}
	if len(streams) != want || c.Gate && gate == none {
		return fmt.Errorf("%d files beside a command, not %d", len(files), want)
	}
	held, err = s.start(c, r, streams, gate)
	return err
}

// request is a Start's packet. A command reads its strings in it.
type request struct {
	packet []byte
	mapped bool // its memory is its own
}

// release unmaps the packet's memory, which is no longer read.
func (r request) release() {
	if r.mapped {
		_ = unix.Munmap(r.packet)
	}
}

// request returns the request that a packet holds, and the files sent with it.
func (s *starter) request(packet []byte, files []int) (r request, streams []int, err error) {
	switch {
	case wire.Kind(packet[0]) != wire.Long:
		r.packet = bytes.Clone(packet)
	case s.long != nil:
		r.packet, err = s.long(packet)
	case len(files) == 0:
		return r, nil, wire.ErrMalformed
	default:
		r.packet, err = mapAll(files[0])
		r.mapped, files = err == nil, files[1:]
	}
	return r, files, err
}

// signal sends a signal to a command's process group. An ended command is safe: it is not reaped meanwhile,
// so its pid is not reused.
func (s *starter) signal(packet []byte) error {
	id, number, err := wire.DecodeSignal(packet)
	if err != nil {
		return err
	}
	for pid, c := range s.commands {
		if c.id != id {
			continue
		}
		if errors.Is(unix.Kill(-pid, unix.Signal(number)), unix.ESRCH) { // it has no process group yet
			_ = unix.Kill(pid, unix.Signal(number))
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

// mapAll returns a file's contents in memory of its own. So they become no garbage, and the file's memory,
// which is the service's, is released.
func mapAll(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(-1, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, errors.Join(err, unix.Munmap(b))
		}
		at += n
	}
	return b, nil
}

// start starts a requested command; held reports whether its process uses the request. A failure of one
// command is no error.
func (s *starter) start(c *wire.Command, r request, streams []int, gate int) (held bool, err error) {
	if err := s.haveThreads(ownThreads); err != nil { // no command runs yet that could use up the memory
		return false, err
	}
	master, slave := none, none
	if c.Terminal {
		if master, slave, err = terminal.Open(c.Rows, c.Columns); err != nil {
			return false, send(failed(c.ID, err, false))
		}
		defer func() {
			closeAll(master, slave)
		}()
		streams = []int{slave, slave, slave}
	}
	child, err := newChild(c, streams, gate)
	if err != nil {
		return false, send(failed(c.ID, err, false))
	}
	pid, err := child.start()
	if err != nil {
		return false, send(failed(c.ID, err, false))
	}
	started := &command{id: c.ID, request: r, child: child, terminal: master, line: slave}
	master, slave = none, none // the child has them
	s.commands[pid] = started
	if s.unreported == 0 {
		s.reportAt = time.Now().Add(reportAfter)
	}
	s.unreported++
	if c.ReportStart {
		return true, s.reportStart(pid, started)
	}
	return true, nil
}

func failed(id uint64, err error, dir bool) wire.Reply {
	var e syscall.Errno
	if !errors.As(err, &e) {
		fmt.Fprintln(os.Stderr, "init:", err)
		e = unix.EIO
	}
	return wire.Reply{Kind: wire.Failed, ID: id, Errno: uint32(e), Dir: dir}
}
