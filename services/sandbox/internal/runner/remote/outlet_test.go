package remote

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// far is the other end of a link: an init that the test is.
type far struct {
	*stream.Mux
	link    *Link
	packets chan []byte // what the service asks for
	ended   chan error  // why the link ended
	hearing sync.Mutex  // held by who wants it to be deaf
}

// ear is what a far end hears by.
type ear struct {
	io.Reader
	of *far
}

func (e ear) Read(b []byte) (int, error) {
	e.of.hearing.Lock()
	e.of.hearing.Unlock() //nolint:staticcheck // it only waits
	return e.Reader.Read(b)
}

func newFar(t *testing.T) *far {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	service, socket := os.NewFile(uintptr(fds[0]), "service"), os.NewFile(uintptr(fds[1]), "init")
	fromInit, out := io.Pipe()
	in, toInit := io.Pipe()
	f := &far{packets: make(chan []byte, 10), ended: make(chan error, 1)}
	f.Mux = stream.New(stream.Options{Read: ear{in, f}, Write: out, MaxPacket: stream.MaxRequest, Packet: func(p []byte) error {
		f.packets <- p
		return nil
	}})
	f.link, err = Join(socket, fromInit, toInit)
	if err := errors.Join(err, socket.Close()); err != nil {
		t.Fatal(err)
	}
	f.link.outlet.ask()
	end := func() { _ = errors.Join(out.CloseWithError(io.EOF), in.CloseWithError(io.ErrClosedPipe)) }
	init := make(chan error, 1)
	go func() { init <- f.Run() }()
	go func() {
		f.ended <- f.link.Run(end)
		end()
		_ = errors.Join(fromInit.Close(), toInit.Close())
	}()
	t.Cleanup(func() {
		_ = service.Close()
		end()
		if err := <-init; err == nil {
			t.Error("the far end ends without a reason")
		}
		f.Wait()
		f.link.Wait()
	})
	return f
}

// connect reports a new connection.
func (f *far) connect(t *testing.T, id uint64) {
	t.Helper()
	p := wire.Reply{Kind: wire.Connected, ID: id}
	if err := f.Send(p.Encode()); err != nil {
		t.Fatal(err)
	}
}

// carry is connect with both directions of a connection, whose other end it returns.
func (f *far) carry(t *testing.T, id uint64) *net.UnixConn {
	t.Helper()
	ours, theirs, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	from, to := stream.Split(ours, func() {})
	f.Drain(stream.Channel(id, stream.Connection), to)
	f.connect(t, id)
	f.Pump(stream.Channel(id, stream.Connection), from)
	t.Cleanup(func() { _ = theirs.Close() })
	return theirs
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAConnectionThatIsClosedOutsideEndsInside(t *testing.T) {
	f := newFar(t)
	inside := f.carry(t, 1)
	outside := accept(t, f.link.Listener())
	if err := outside.Close(); err != nil {
		t.Fatal(err)
	}
	// No data was written: both directions still end.
	if n, err := inside.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("it reads %d bytes, %v", n, err)
	}
	for deadline := time.Now().Add(time.Minute); ; { // its writer has ended when writing fails
		if _, err := inside.Write([]byte("x")); errors.Is(err, unix.EPIPE) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it can still be written to")
		}
	}
}

func TestAListenerThatIsClosedIsClosedInside(t *testing.T) {
	f := newFar(t)
	waiting := f.carry(t, 1)
	l := f.link.Listener()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if p := <-f.packets; wire.Kind(p[0]) != wire.Unlisten {
		t.Errorf("init hears %v", p)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting: %v", err)
	}
	for _, c := range []*net.UnixConn{waiting, f.carry(t, 2)} { // before and after
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("a connection reads %d bytes, %v", n, err)
		}
	}
}

func TestConnectionsBeyondTheNumberAreRefused(t *testing.T) {
	f := newFar(t)
	l := f.link.Listener()
	for id := range maxOpen {
		f.carry(t, uint64(id+1))
	}
	beyond := f.carry(t, maxOpen+1)
	if n, err := beyond.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("one beyond reads %d bytes, %v", n, err)
	}
	first := accept(t, l) // the others do not notice
	if _, err := first.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	for range maxOpen - 1 {
		accept(t, l)
	}
	if c := f.link.outlet.next(); c != nil {
		t.Error("the one beyond is accepted")
	}
}

// A sandbox that breaks down takes nothing with it that had come before.
func TestWhatHasComeOutlivesTheLink(t *testing.T) {
	f := newFar(t)
	l := f.link.Listener()
	f.carry(t, 1)
	f.connect(t, 0) // no init of ours says so
	if err := <-f.ended; !errors.Is(err, stream.ErrMalformed) {
		t.Errorf("the link ended with %v", err)
	}
	accept(t, l)
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting: %v", err)
	}
}

// Who has taken an init over does not read any more: closing a connection does not wait for that.
func TestClosingAConnectionDoesNotWaitForADeafInit(t *testing.T) {
	f := newFar(t)
	var open []net.Conn
	for id := range uint64(3) { // it may hear of the first: it is listening
		f.carry(t, id+1)
		open = append(open, accept(t, f.link.Listener()))
	}
	f.hearing.Lock()
	for _, c := range open {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	f.hearing.Unlock()
}

func TestAnInitThatIsNoneEndsTheLink(t *testing.T) {
	said := func(k wire.Kind, ids ...uint64) (all []wire.Reply) {
		for _, id := range ids {
			all = append(all, wire.Reply{Kind: k, ID: id})
		}
		return all
	}
	var many []uint64
	for id := range uint64(maxConnections + 1) {
		many = append(many, id+1)
	}
	for name, replies := range map[string][]wire.Reply{
		"a number that comes again":       said(wire.Connected, 1, 1),
		"a number that is smaller":        said(wire.Connected, 2, 1),
		"a number that is zero":           said(wire.Connected, 0),
		"a number that no channel has":    said(wire.Connected, 1<<62),
		"more connections than init says": said(wire.Connected, many...),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFar(t)
			for _, p := range replies {
				if f.Send(p.Encode()) != nil {
					break // it has ended
				}
			}
			if err := <-f.ended; !errors.Is(err, stream.ErrMalformed) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// Who has taken an init over connects again and again, and reads nothing: what the service has of
// that is bounded, and in the end the sandbox's end.
func TestADeafInitDoesNotFillTheService(t *testing.T) {
	f := newFar(t)
	go func() {
		for l := f.link.Listener(); ; {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	f.hearing.Lock()
	before, most := runtime.NumGoroutine(), 0
	for id := uint64(1); ; id++ {
		if p := (wire.Reply{Kind: wire.Connected, ID: id}); f.Send(p.Encode()) != nil {
			break
		}
		f.Pump(stream.Channel(id, stream.Connection), io.NopCloser(strings.NewReader("")))
		most = max(most, runtime.NumGoroutine())
	}
	f.hearing.Unlock()
	if err := <-f.ended; !errors.Is(err, stream.ErrMalformed) {
		t.Errorf("it ended with %v", err)
	}
	if most > before+4*maxConnections {
		t.Errorf("there were %d goroutines, %d before", most, before)
	}
}

func TestConnectionsLeaveNothing(t *testing.T) {
	f := newFar(t)
	l := f.link.Listener()
	files := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := files()
	for id := uint64(1); id <= 500; id++ {
		inside := f.carry(t, id)
		outside := accept(t, l)
		ends := []net.Conn{inside, outside}
		if id%2 == 0 { // who ends it first
			ends[0], ends[1] = ends[1], ends[0]
		}
		for _, c := range ends {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	taken := func() int {
		f.link.outlet.mu.Lock()
		defer f.link.outlet.mu.Unlock()
		return f.link.outlet.taken
	}
	for deadline := time.Now().Add(time.Minute); taken() > 0 || files() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections and %d files are left, of %d", taken(), files(), before)
		}
	}
}
