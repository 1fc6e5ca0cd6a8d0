package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

var errGone = errors.New("the sandbox has ended")

// awaitReady waits for init's first message.
func (s *sandbox) awaitReady(deadline time.Time) error {
	if err := s.init.SetReadDeadline(deadline); err != nil {
		return err
	}
	reply, files, err := s.init.read()
	closeAll(files)
	if err != nil || reply.Kind != wire.Ready {
		if os.IsTimeout(err) {
			return errors.New("the sandbox's init did not start in time")
		}
		return fmt.Errorf("the sandbox could not be completed: %s", s.lastOutput())
	}
	return s.init.SetReadDeadline(time.Time{})
}

// follow reads init's replies until the sandbox has ended, and then cleans up. An invalid reply ends the
// sandbox.
func (s *sandbox) follow() {
	for {
		reply, files, err := s.init.read()
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
	lost := s.commands.list() // no more are added
	s.r.drop(s)
	oom := s.counts().OOMKills
	s.logCrash()
	s.release()
	for _, p := range lost {
		p.lose(oom, s.hold.isStarved())
	}
	s.r.ended(s)
	close(s.done)
}

// logEnd logs why a sandbox ends, unless the service ended it.
func (s *sandbox) logEnd(err error) {
	if !s.hold.isEnding() {
		s.r.log.Warn("a sandbox ended unexpectedly", "commands", len(s.commands.list()), "error", err)
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
		return s.terminals.hear(reply)
	}
	p := s.commands.find(reply.ID)
	if p == nil {
		return errors.New("init speaks of a command that does not run")
	}
	return p.handle(reply, files)
}

// counts returns what the kernel has counted for the sandbox.
func (s *sandbox) counts() cgroup.Counts {
	if s.group != nil {
		return s.group.Counts()
	}
	return s.hold.counts()
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
		if pid != s.hold.pid {
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
