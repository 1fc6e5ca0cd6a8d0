package remote

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// Init carries at most stream.MaxConnections, but may know of the end of one earlier than this side.
// Connections beyond twice that number are refused. Four times that number violates the protocol.
const (
	maxOpen        = 2 * stream.MaxConnections
	maxConnections = 4 * stream.MaxConnections
)

var errRefused = errors.New("the connection was refused")

// outlet receives the connections of a sandbox's way out that a remote init carries.
type outlet struct {
	arrived chan *connection

	mu        sync.Mutex    // guards what follows
	listening bool          // a listener was requested: its owner accepts the connections or closes it
	closed    chan struct{} // closed when no more connections arrive
	last      uint64        // the latest connection
	taken     int           // connections that have not ended, including refused ones
}

func newOutlet() *outlet {
	return &outlet{arrived: make(chan *connection, maxOpen), closed: make(chan struct{})}
}

// Listener returns the sandbox's way out, after init was asked to Listen. Closing it also closes it inside.
// It ends with the link, except for earlier connections.
func (l *Link) Listener() net.Listener { return listener{l} }

type listener struct{ l *Link }

// Accept implements net.Listener. Connections that arrived before the end are still accepted.
func (n listener) Accept() (net.Conn, error) {
	o := n.l.outlet
	select {
	case c := <-o.arrived:
		return c, nil
	case <-o.closed:
	}
	if c := o.next(); c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}

// next returns a waiting connection, or nil.
func (o *outlet) next() *connection {
	select {
	case c := <-o.arrived:
		return c
	default:
		return nil
	}
}

// Close implements net.Listener. Only the first call counts.
func (n listener) Close() error {
	if n.l.outlet.shut() {
		_ = n.l.mux.Send(wire.EncodeID(wire.Unlisten, 0)) // on failure the other side is gone
	}
	for c := n.l.outlet.next(); c != nil; c = n.l.outlet.next() {
		_ = c.Close()
	}
	return nil
}

// Addr implements net.Listener.
func (listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: wire.Port} }

// shut stops new connections and reports whether it is the first call to do so.
func (o *outlet) shut() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.closed:
		return false
	default:
	}
	close(o.closed)
	return true
}

// ask records that init is asked to listen.
func (o *outlet) ask() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listening = true
}

// accept counts a connection and reports whether there is room for it. It refuses a repeated number, which
// would mix up connections.
func (o *outlet) accept(id uint64) (room bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.listening || id <= o.last || id > 1<<61 || o.taken >= maxConnections {
		return false, stream.ErrMalformed
	}
	o.last = id
	o.taken++
	return o.taken <= maxOpen, nil
}

func (o *outlet) ended() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken--
}

// connected joins a new connection to one end of a socket pair, whose other end is accepted.
func (l *Link) connected(id uint64) error {
	room, err := l.outlet.accept(id)
	if err != nil {
		return err
	}
	channel := stream.Channel(id, stream.Connection)
	if !room || !l.join(channel) {
		from, to := l.outlet.refuse()
		l.mux.Drain(channel, to)
		l.mux.Pump(channel, from)
	}
	return nil
}

// join joins a channel to the accepted end. It fails if the service has no descriptors left.
func (l *Link) join(channel uint64) bool {
	ours, theirs, err := pair()
	if err != nil {
		return false
	}
	from, to := stream.Split(ours, l.outlet.ended)
	l.mux.Drain(channel, to)
	l.mux.Pump(channel, from)
	l.outlet.offer(&connection{UnixConn: theirs, stop: func() { l.mux.Stop(channel) }})
	return true
}

// offer queues a connection to be accepted, or closes it. It neither waits nor sends.
func (o *outlet) offer(c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.closed:
	default:
		select {
		case o.arrived <- c:
			return
		default:
		}
	}
	_ = c.UnixConn.Close()
}

// pair makes two connected sockets.
func pair() (*os.File, *net.UnixConn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, f := os.NewFile(uintptr(fds[0]), "connection"), os.NewFile(uintptr(fds[1]), "connection")
	theirs, err := net.FileConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs.(*net.UnixConn), nil
}

// connection is an accepted connection. Its Close also ends the reading side, and the sandbox is told at
// once.
type connection struct {
	*net.UnixConn
	once sync.Once
	stop func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	err := c.UnixConn.Close()
	c.once.Do(c.stop)
	return err
}

// refused replaces one direction of a refused connection: it accepts and supplies no data.
type refused struct{ ended func() }

// refuse makes both directions of a refused connection. When both are closed, it no longer counts.
func (o *outlet) refuse() (from, to refused) {
	var left atomic.Int32
	left.Store(2)
	ended := func() {
		if left.Add(-1) == 0 {
			o.ended()
		}
	}
	return refused{sync.OnceFunc(ended)}, refused{sync.OnceFunc(ended)}
}

func (refused) Read([]byte) (int, error)  { return 0, io.EOF }
func (refused) Write([]byte) (int, error) { return 0, errRefused }

// Close implements io.Closer. Only the first call counts.
func (r refused) Close() error {
	r.ended()
	return nil
}
