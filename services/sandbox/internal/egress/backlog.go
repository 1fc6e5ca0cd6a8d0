package egress

import (
	"errors"
	"math"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// backlogTimeout limits how long a command's end waits until all earlier connections are accepted; the
	// kernel holds some thousands at most.
	backlogTimeout = 10 * time.Second
	backlogAgain   = time.Millisecond
	// filesPause is how long a listener without descriptors waits for a connection, or for its spare
	// descriptor if the service used that.
	filesPause = 10 * time.Millisecond
)

// backlog is a listener that reports connections that are not accepted yet. It accepts them in their order.
type backlog interface {
	net.Listener
	// Waiting returns how many connections wait to be accepted.
	Waiting() int
	// SetDeadline with a past time makes Accept return os.ErrDeadlineExceeded, even on a closed listener. A
	// call with the zero time ends that.
	SetDeadline(t time.Time) error
}

// backlogOf returns a listener as a backlog, or nil if it does not report waiting connections.
func backlogOf(l net.Listener) backlog {
	switch l := l.(type) {
	case backlog:
		return l
	case polled:
		return newSocket(l)
	}
	return nil
}

// polled is a listener of the kernel.
type polled interface {
	net.Listener
	syscall.Conn
	SetDeadline(t time.Time) error
}

// socket is a backlog of the kernel. It still accepts when the service has no descriptor left: these
// connections are lost, but counted.
type socket struct {
	polled

	mu     sync.Mutex // guards what follows
	spare  int        // a descriptor for accepting; -1 for none
	late   bool       // the deadline has passed
	closed bool
}

func newSocket(l polled) *socket {
	s := &socket{polled: l, spare: -1}
	s.save()
	return s
}

// save opens a spare descriptor if possible. mu is held.
func (s *socket) save() bool {
	if s.spare < 0 {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		s.spare = fd
	}
	return true
}

// spend closes the spare descriptor. mu is held.
func (s *socket) spend() error {
	if s.spare < 0 {
		return nil
	}
	fd := s.spare
	s.spare = -1
	return unix.Close(fd)
}

// Close implements net.Listener. Only the first call counts.
func (s *socket) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	err := s.polled.Close() // waits for lose
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.spend())
}

// SetDeadline implements backlog.
func (s *socket) SetDeadline(t time.Time) error {
	s.mu.Lock()
	s.late = !t.IsZero()
	s.mu.Unlock()
	return s.polled.SetDeadline(t)
}

// Accept implements net.Listener. It may return a lost connection.
func (s *socket) Accept() (net.Conn, error) {
	for {
		sound, late := s.sound()
		switch {
		case sound:
			c, err := s.polled.Accept()
			if !noFile(err) {
				return c, err
			}
			if s.lose() {
				return lostHere{}, nil
			}
		case late:
			return nil, os.ErrDeadlineExceeded
		}
		<-time.After(filesPause)
	}
}

// sound reports whether the listener has its spare descriptor, or is closed and needs none. Without the
// spare, the last descriptor must not go to a long-lived connection. late reports whether the deadline has
// passed.
func (s *socket) sound() (sound, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.save(), s.late
}

// noFile reports whether the service or the machine has run out of descriptors, or of memory for one.
func noFile(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM)
}

// lose accepts the next connection with the spare descriptor, and closes it. It fails if there is no
// connection, or if another part of the service takes the descriptor.
func (s *socket) lose() (done bool) {
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		done = readable(fd) && s.loseNext(int(fd))
	})
	return err == nil && done
}

func (s *socket) loseNext(listener int) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.spend()
	c, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err == nil {
		_, _ = unix.Write(c, []byte(noFiles)) // it fits into the socket's buffer
		_ = unix.Close(c)
	}
	s.save()
	return err == nil
}

// noFiles is the answer to the client of a lost connection.
const noFiles = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"the sandbox service has as many files open as it may: try again later\n"

// lostHere is a lost connection, already closed.
type lostHere struct{ net.Conn }

// Lost implements lost.
func (lostHere) Lost() string { return "the sandbox service has as many files open as it may" }

// Close implements net.Conn.
func (lostHere) Close() error { return nil }

// Waiting implements backlog.
func (s *socket) Waiting() (n int) {
	raw, err := s.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(fd uintptr) {
		// For a listener, this is the queue's length (tcp_get_info in the kernel).
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Unacked)
		} else if readable(fd) {
			n = math.MaxInt32
		}
	})
	if err != nil {
		return 0
	}
	return n
}

func readable(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// CatchUp waits, for a limited time, until all earlier connections are accepted: the end of a command must
// include all that it began. It does nothing if the listener does not report waiting connections.
func (s *Server) CatchUp() {
	if s.backlog == nil {
		return
	}
	late := time.NewTimer(backlogTimeout)
	defer late.Stop()
	if n := s.backlog.Waiting(); n > 0 {
		s.awaitAccepted(s.accepted.Load()+uint64(n)+1, late.C) // one may be accepted but not counted yet
	}
	admitted := make(chan struct{})
	s.mu.Lock()
	if s.deaf {
		s.mu.Unlock()
		return
	}
	s.behind = append(s.behind, admitted)
	_ = s.backlog.SetDeadline(time.Unix(1, 0)) // when Accept sees that, or a closed listener, the connection before is admitted
	s.mu.Unlock()
	select {
	case <-admitted:
	case <-s.ctx.Done():
	case <-late.C:
	}
}

// awaitAccepted waits until the number of accepted connections reaches most, until none waits, or until
// late. Connections may arrive without end, so it does not wait for later ones.
func (s *Server) awaitAccepted(most uint64, late <-chan time.Time) {
	again := time.NewTicker(backlogAgain)
	defer again.Stop()
	for s.accepted.Load() < most && s.backlog.Waiting() > 0 {
		select {
		case <-again.C:
		case <-s.ctx.Done():
			return
		case <-late:
			return
		}
	}
}

// caughtUp tells waiters that all accepted connections are admitted. deaf means that no more will be.
func (s *Server) caughtUp(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf = deaf; !deaf {
		_ = s.backlog.SetDeadline(time.Time{}) // an error means that it is closed
	}
	for _, admitted := range s.behind {
		close(admitted)
	}
	s.behind = nil
}
