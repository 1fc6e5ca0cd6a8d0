package egress

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	backlogTimeout = 100 * time.Millisecond
	backlogAgain   = time.Millisecond
)

// backlog is a listener that can be asked for connections which nobody has accepted yet.
type backlog interface {
	net.Listener
	syscall.Conn
	SetDeadline(t time.Time) error
}

// CatchUp returns when what has connected before is accepted, but soon in any case: who ends a
// command must know of all that it began. It does nothing where the listener does not tell.
func (s *Server) CatchUp() {
	l, ok := s.listener.(backlog)
	if !ok {
		return
	}
	late := time.NewTimer(backlogTimeout)
	defer late.Stop()
	again := time.NewTicker(backlogAgain)
	defer again.Stop()
	for waiting(l) { // others may connect without end
		select {
		case <-again.C:
			continue
		case <-late.C:
		}
		break
	}
	admitted := make(chan struct{})
	s.mu.Lock()
	s.behind = append(s.behind, admitted)
	err := l.SetDeadline(time.Unix(1, 0)) // who accepts has admitted the one before when it sees that
	s.mu.Unlock()
	if err != nil {
		return // it is closed
	}
	select {
	case <-admitted:
	case <-s.ctx.Done():
	case <-time.After(backlogTimeout):
	}
}

// caughtUp tells those who wait that what was accepted is admitted.
func (s *Server) caughtUp(l backlog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = l.SetDeadline(time.Time{}) // an error says that it is closed
	for _, admitted := range s.behind {
		close(admitted)
	}
	s.behind = nil
}

// waiting says whether a connection waits to be accepted.
func waiting(l backlog) (some bool) {
	raw, err := l.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		some = err == nil && n > 0
	})
	return some && err == nil
}
