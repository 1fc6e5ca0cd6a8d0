package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// sendTimeout limits how long init may leave a request unread.
const sendTimeout = 10 * time.Second

var errGone = errors.New("the sandbox has ended")

// awaitReady waits for init's first message.
func (s *sandbox) awaitReady(deadline time.Time) error {
	if err := s.socket.SetReadDeadline(deadline); err != nil {
		return err
	}
	reply, files, err := s.read()
	closeAll(files)
	if err != nil || reply.Kind != wire.Ready {
		if os.IsTimeout(err) {
			return errors.New("the sandbox's init did not start in time")
		}
		return fmt.Errorf("the sandbox could not be completed: %s", s.lastOutput())
	}
	return s.socket.SetReadDeadline(time.Time{})
}

// read reads one reply. The caller owns the files, also after an error.
func (s *sandbox) read() (wire.Reply, []int, error) {
	packet, rights := make([]byte, 64), make([]byte, unix.CmsgSpace(2*4))
	n, nr, _, _, err := s.socket.ReadMsgUnix(packet, rights)
	if err != nil {
		return wire.Reply{}, nil, err
	}
	var files []int
	if nr > 0 {
		messages, err := unix.ParseSocketControlMessage(rights[:nr])
		if err != nil {
			return wire.Reply{}, nil, err
		}
		for i := range messages {
			fds, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return wire.Reply{}, files, err
			}
			files = append(files, fds...)
		}
	}
	if n == 0 {
		return wire.Reply{}, files, errGone
	}
	reply, err := wire.DecodeReply(packet[:n])
	return reply, files, err
}

func closeAll(files []int) {
	for _, f := range files {
		_ = unix.Close(f)
	}
}

// send sends a request to init. errGone means that init has ended without receiving it.
func (s *sandbox) send(packet []byte, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if err := s.socket.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, _, err := s.socket.WriteMsgUnix(packet, rights, nil)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return errGone
	}
	return err
}

// sendCommand asks init to start a command. It sends a long one in a file.
func (s *sandbox) sendCommand(c *wire.Command, streams []int) error {
	packet := c.Encode()
	if len(packet) <= wire.MaxPacket {
		return s.send(packet, streams...)
	}
	fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "command")
	defer func() { _ = f.Close() }()
	if _, err := f.Write(packet); err != nil {
		return err
	}
	return s.send([]byte{byte(wire.Long)}, append([]int{fd}, streams...)...)
}

// follow reads init's replies until the sandbox has ended, and then cleans up. An invalid reply ends the
// sandbox.
func (s *sandbox) follow() {
	for {
		reply, files, err := s.read()
		if err == nil {
			err = s.deliver(reply, &files)
		}
		closeAll(files)
		if err != nil {
			s.logEnd(err)
			break
		}
	}
	s.kill()
	s.mu.Lock()
	lost := slices.Collect(maps.Values(s.commands)) // it is ending, so no more are added
	s.mu.Unlock()
	s.r.drop(s)
	oom := s.counts().OOMKills
	s.logCrash()
	s.release()
	for _, p := range lost {
		p.lose(oom, s.starved)
	}
	s.r.ended(s)
	close(s.done)
}

// logEnd logs why a sandbox ends, unless the service ended it.
func (s *sandbox) logEnd(err error) {
	s.mu.Lock()
	asked, commands := s.ending, len(s.commands)
	s.mu.Unlock()
	if !asked {
		s.r.log.Warn("a sandbox ended unexpectedly", "commands", commands, "error", err)
	}
}

// logCrash logs init's last output: init writes only when it crashes.
func (s *sandbox) logCrash() {
	_ = s.errOut.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	raw := make([]byte, 2048)
	if n, _ := s.errOut.Read(raw); n > 0 {
		s.r.log.Warn("the init of a sandbox broke down", "said", string(raw[:n]))
	}
}

// deliver passes init's message to a command's process. It removes the files that the process keeps from the
// list.
func (s *sandbox) deliver(reply wire.Reply, files *[]int) error {
	if reply.Kind == wire.Terminals {
		return s.hearTerminals(reply)
	}
	s.mu.Lock()
	p := s.commands[reply.ID]
	s.mu.Unlock()
	if p == nil {
		return errors.New("init speaks of a command that does not run")
	}
	return p.handle(reply, files)
}

func (s *sandbox) counts() cgroup.Counts {
	if s.group != nil {
		return s.group.Counts()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if own, ok := s.body.(Counting); ok {
		return own.Counts()
	}
	return cgroup.Counts{}
}

// countsBefore returns the counts of the sandbox's group before a command starts. If only init is in the
// sandbox, they equal those at the end of the last command.
func (s *sandbox) countsBefore(alone bool) cgroup.Counts {
	s.mu.Lock()
	still, met := s.still, s.met
	s.still = false
	s.mu.Unlock()
	if alone && still {
		return met
	}
	return s.counts()
}

// countsAfter returns the counts of the group at the end of a command. swept means that nothing is left in
// the sandbox.
func (s *sandbox) countsAfter(swept bool) cgroup.Counts {
	now := s.counts()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.still = swept && len(s.commands) == 1; s.still {
		s.met = now
	}
	return now
}

// sweep kills the remains of a command that ran in the sandbox's own group beside others. Init's sweep
// would kill those too.
func (s *sandbox) sweep() {
	s.starting.Lock() // a command that is being started is briefly in that group
	defer s.starting.Unlock()
	if s.group == nil || len(s.strays()) == 0 {
		return
	}
	err := s.freeze(context.Background())
	if errors.Is(err, errGone) {
		return
	}
	if err != nil {
		s.r.log.Error("cannot tell the leftovers of a command from other commands: ending its sandbox", "error", err)
		s.kill()
		return
	}
	for _, pid := range s.strays() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	s.thaw()
}

// strays returns the processes in the sandbox's own group, except init.
func (s *sandbox) strays() []int {
	var all []int
	for _, pid := range s.group.Pids() {
		if pid != s.init {
			all = append(all, pid)
		}
	}
	return all
}

func terminalSize(t *box.TerminalSize) (rows, columns uint16) {
	if t == nil {
		return 0, 0
	}
	return t.Rows, t.Columns
}
