package egress

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// slow accepts a connection when it may.
type slow struct {
	*net.TCPListener

	may chan struct{}
}

func (s slow) Accept() (net.Conn, error) {
	c, err := s.TCPListener.Accept()
	if err == nil {
		<-s.may
	}
	return c, err
}

// A command connects and ends at once: what it began is known nevertheless.
func TestCatchUpKnowsWhatHasConnected(t *testing.T) {
	w := newWorld(t, cut)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const made = 20
	begun := make(chan struct{}, made)
	may := make(chan struct{})
	s := w.proxy.Serve(slow{l.(*net.TCPListener), may}, &Policy{}, Client{Begin: func(string, bool) (Use, error) {
		begun <- struct{}{}
		return Use{}, nil
	}})
	defer func() { _ = s.Close() }()
	for round := range 3 {
		for range made {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
		}
		done := make(chan struct{})
		go func() { s.CatchUp(); close(done) }()
		for range made {
			may <- struct{}{}
		}
		<-done
		if n := len(begun); n != made {
			t.Errorf("round %d: %d of %d are known", round, n, made)
		}
		for len(begun) > 0 {
			<-begun
		}
	}
}

// More connect at once than are accepted in a moment, and the kernel knows how many wait.
func TestCatchUpWaitsForAFlood(t *testing.T) {
	w := newWorld(t, cut)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const made = 1000
	var begun atomic.Int64
	may := make(chan struct{})
	s := w.proxy.Serve(slow{l.(*net.TCPListener), may}, &Policy{}, Client{Begin: func(string, bool) (Use, error) {
		begun.Add(1)
		return Use{}, nil
	}})
	defer func() { _ = s.Close() }()
	for range made {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if n := s.backlog.Waiting(); n < made-1 || n > made { // one may be accepted, and not let through
		t.Errorf("%d wait", n)
	}
	later, err := net.Dial("tcp", l.Addr().String()) // without end, for what is asked for
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = later.Close() }()
	done := make(chan struct{})
	go func() { s.CatchUp(); close(done) }()
	for range made + 1 {
		may <- struct{}{}
	}
	<-done
	if n := begun.Load(); n != made+1 {
		t.Errorf("%d of %d are known", n, made+1)
	}
}

// Who has used up the service's descriptors hides nothing by it: what is lost is told, and the
// next connection is served again.
func TestConnectionsAreToldWhereNoDescriptorIsLeft(t *testing.T) {
	w := newWorld(t, cut)
	clients := make([]int, 20)
	for i := range clients { // they need theirs before
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		clients[i] = fd
	}
	to := netip.MustParseAddrPort(w.addr)
	free := useUpFiles(t)
	for _, fd := range clients {
		if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
			t.Error(err)
		}
	}
	w.server.CatchUp()
	free()
	if n := w.server.accepted.Load(); n != uint64(len(clients)) {
		t.Fatalf("%d of %d are known", n, len(clients))
	}
	answered := 0
	for _, fd := range clients {
		_ = unix.Shutdown(fd, unix.SHUT_WR)
		answer := make([]byte, 64)
		if n, _ := unix.Read(fd, answer); strings.HasPrefix(string(answer[:max(n, 0)]), "HTTP/1.1 503") {
			answered++
		}
	}
	told := map[Outcome]int{}
	for range clients {
		e := w.event()
		told[e.Outcome]++
		if e.Outcome == Limited && !strings.Contains(e.Message, "files open") {
			t.Errorf("told as %s", e.Message)
		}
	}
	if told[Limited] < len(clients)-2 || told[Limited] != answered { // something else in the process may give up a descriptor
		t.Errorf("told as %v, and %d were told so", told, answered)
	}
	if resp, _, _ := w.raw("GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("the next one is answered with %d", resp.StatusCode)
	}
}

// useUpFiles leaves the process no descriptor until it is called off.
func useUpFiles(t *testing.T) (free func()) {
	t.Helper()
	var old unix.Rlimit
	if err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &old), unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: old.Max})); err != nil {
		t.Fatal(err)
	}
	var used []int
	for {
		fd, err := unix.Dup(2)
		if err != nil {
			break
		}
		used = append(used, fd)
	}
	return func() {
		for _, fd := range used {
			_ = unix.Close(fd)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// last is a backlog of which one connection is accepted, at a time that is chosen, and which has
// been closed meanwhile.
type last struct{ one chan net.Conn }

func (l *last) Accept() (net.Conn, error) {
	if c, ok := <-l.one; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (*last) Close() error                { return nil }
func (*last) Addr() net.Addr              { return &net.TCPAddr{} }
func (*last) Waiting() int                { return 0 }
func (*last) SetDeadline(time.Time) error { return net.ErrClosed }

// A sandbox breaks down while the last of its connections is being accepted.
func TestCatchUpWaitsForWhoeverIsAcceptedAsTheListenerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Options{Limits: Limits{Connections: 1, Idle: time.Hour, Total: time.Hour, Bytes: 1}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var begun atomic.Int64
		l := &last{one: make(chan net.Conn)}
		s := p.Serve(l, &Policy{}, Client{Begin: func(string, bool) (Use, error) {
			begun.Add(1)
			return Use{}, nil
		}})
		before := time.Now()
		known := make(chan int64)
		go func() { s.CatchUp(); known <- begun.Load() }()
		synctest.Wait()
		ours, theirs := net.Pipe()
		l.one <- theirs
		close(l.one)
		if n := <-known; n != 1 || time.Since(before) != 0 {
			t.Errorf("%d are known after %v", n, time.Since(before))
		}
		s.CatchUp() // for which nobody is there any more
		if waited := time.Since(before); waited != 0 {
			t.Errorf("it waits for %v", waited)
		}
		if err := errors.Join(ours.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
}

// Somebody else has taken the last descriptor: nothing can be accepted, and no end waits for that
// when nothing has come.
func TestCatchUpDoesNotWaitForADescriptor(t *testing.T) {
	w := newWorld(t, cut)
	free := useUpFiles(t)
	s := w.server.backlog.(*socket) //nolint:forcetypeassert // it is
	s.mu.Lock()
	err := s.spend()
	other, taken := unix.Dup(2)
	s.mu.Unlock()
	before := time.Now()
	w.server.CatchUp()
	free()
	if taken == nil {
		taken = unix.Close(other)
	} else if errors.Is(taken, unix.EMFILE) { // something else in the process was quicker
		taken = nil
	}
	if waited := time.Since(before); errors.Join(err, taken) != nil || waited > backlogTimeout/2 {
		t.Errorf("%v, %v: it waits for %v", err, taken, waited)
	}
}
