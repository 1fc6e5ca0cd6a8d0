package remote

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// Init carries no more than stream.MaxConnections, but may take one for ended that is
// not here yet. What comes beyond twice as many is refused, and four times as many are
// made by no init of ours.
const (
	maxOpen  = 2 * stream.MaxConnections
	maxTaken = 4 * stream.MaxConnections
)

var errRefused = errors.New("the connection was refused")

// outlet is where the connections of a sandbox's way out come in that init elsewhere
// carries.
type outlet struct {
	arrived chan *connection

	mu     sync.Mutex    // guards what follows
	closed chan struct{} // closed when nobody takes connections any more
	last   uint64        // the latest connection
	taken  int           // connections that have not ended, refused ones as well
}

func newOutlet() *outlet {
	return &outlet{arrived: make(chan *connection, maxOpen), closed: make(chan struct{})}
}

// Listener is the sandbox's way out, once init was asked to Listen. Closing it closes it
// inside, too. It ends with the link.
func (l *Link) Listener() net.Listener { return listener{l} }

type listener struct{ l *Link }

// Accept implements net.Listener.
func (n listener) Accept() (net.Conn, error) {
	select {
	case c := <-n.l.outlet.arrived:
		return c, nil
	case <-n.l.outlet.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Only the first time counts.
func (n listener) Close() error {
	if n.l.outlet.shut() {
		_ = n.l.mux.Send(wire.EncodeID(wire.Unlisten, 0)) // who cannot hear it is gone
	}
	return nil
}

// Addr implements net.Listener.
func (listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: wire.Port} }

// shut has nobody come in any more, and says whether it is the first to.
func (o *outlet) shut() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.closed:
		return false
	default:
	}
	close(o.closed)
	for {
		select {
		case c := <-o.arrived:
			_ = c.UnixConn.Close()
		default:
			return true
		}
	}
}

// take counts a connection in, and says whether there is room for it. Numbers that come
// again would mix up connections.
func (o *outlet) take(id uint64) (room bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id <= o.last || id > 1<<61 || o.taken >= maxTaken {
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

// connected joins a new connection to one end of a pair of sockets, whose other end is
// accepted.
func (l *Link) connected(id uint64) error {
	room, err := l.outlet.take(id)
	if err != nil {
		return err
	}
	channel := stream.Channel(id, stream.Connection)
	if !room || !l.join(channel) {
		l.mux.Drain(channel, refused{l.outlet})
		l.mux.Pump(channel, refused{})
	}
	return nil
}

// join joins a channel to what is accepted. It cannot where the service has as many
// files as it may.
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

// offer has a connection be accepted, or closes it. It does not wait, nor does it send.
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

// pair makes two sockets that are joined.
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

// connection is one as it is accepted. Who closes it wants to read nothing any more, and
// the sandbox hears of that at once.
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

// refused stands for a connection that there is no room for: it takes nothing, and has
// nothing to say.
type refused struct{ of *outlet }

func (refused) Read([]byte) (int, error)  { return 0, io.EOF }
func (refused) Write([]byte) (int, error) { return 0, errRefused }

// Close counts it out.
func (r refused) Close() error {
	if r.of != nil {
		r.of.ended()
	}
	return nil
}
