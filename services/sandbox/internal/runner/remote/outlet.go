package remote

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

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

// maxLost is how many connections init may turn away at a command's end.
const maxLost = 1 << 14

var errRefused = errors.New("the connection was refused")

// outlet is where the connections of a sandbox's way out come in that init elsewhere
// carries.
type outlet struct {
	arrived chan *connection
	changed chan struct{} // holds a token when connections were lost
	late    chan struct{} // holds one token while the listener's deadline is over

	mu     sync.Mutex    // guards what follows
	asked  bool          // for a listener: who has that takes what comes, or closes it
	closed chan struct{} // closed when none arrives any more
	last   uint64        // the latest connection
	taken  int           // connections that have not ended, including lost ones
	lost   uint64        // connections that cannot be carried and are not reported yet
	turned bool          // init has reported some since a command ended
}

func newOutlet() *outlet {
	return &outlet{arrived: make(chan *connection, maxOpen), changed: make(chan struct{}, 1), late: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Listener is the sandbox's way out, once init was asked to Listen. Closing it closes it
// inside, too. It ends with the link, but for what has come before.
func (l *Link) Listener() net.Listener { return listener{l} }

type listener struct{ l *Link }

// Accept implements net.Listener. A connection may be lost.
func (n listener) Accept() (net.Conn, error) {
	o := n.l.outlet
	for {
		select {
		case <-o.late:
			o.expire()
			return nil, os.ErrDeadlineExceeded
		default:
		}
		if c := o.next(); c != nil {
			return c, nil
		}
		select {
		case c := <-o.arrived:
			return c, nil
		case <-o.changed:
		case <-o.late:
			o.expire()
			return nil, os.ErrDeadlineExceeded
		case <-o.closed:
			if c := o.next(); c != nil { // it came before
				return c, nil
			}
			return nil, net.ErrClosed
		}
	}
}

// next is a connection that is there, or nil.
func (o *outlet) next() net.Conn {
	select {
	case c := <-o.arrived:
		return c
	default:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost == 0 {
		return nil
	}
	o.lost--
	c, other := net.Pipe()
	_ = other.Close()
	return lost{c}
}

// lost is a connection that is over.
type lost struct{ net.Conn }

// Lost says why.
func (lost) Lost() string { return "the sandbox service had no room to carry the connection" }

// turn notes connections that init has turned away. It says so once before it tells of a command's
// end: more would be more than there can be.
func (o *outlet) turn(n uint64) error {
	o.mu.Lock()
	again := o.turned || !o.asked || n > maxLost
	o.turned = true
	o.mu.Unlock()
	if again {
		return stream.ErrMalformed
	}
	o.lose(n)
	return nil
}

// exited notes that a command has ended.
func (o *outlet) exited() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turned = false
}

// lose notes connections that cannot be carried.
func (o *outlet) lose(n uint64) {
	o.mu.Lock()
	o.lost = min(o.lost+n, 2*maxLost)
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// Waiting is how many connections wait to be accepted. Init tells of those that it took
// before it tells of a command's end.
func (n listener) Waiting() int {
	o := n.l.outlet
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.arrived) + int(o.lost)
}

// SetDeadline has Accept fail with os.ErrDeadlineExceeded, until it is called with no time, by who
// accepts. No time may be one to come. One of a listener that was closed meanwhile can be taken back as
// well: else Accept would never say that it is closed.
func (n listener) SetDeadline(t time.Time) error {
	o := n.l.outlet
	if t.IsZero() {
		select {
		case <-o.late:
		default:
		}
	}
	select {
	case <-o.closed:
		return net.ErrClosed
	default:
	}
	if !t.IsZero() {
		o.expire()
	}
	return nil
}

// expire has the deadline be over.
func (o *outlet) expire() {
	select {
	case o.late <- struct{}{}:
	default:
	}
}

// Close implements net.Listener. Only the first time counts.
func (n listener) Close() error {
	if n.l.outlet.shut() {
		_ = n.l.mux.Send(wire.EncodeID(wire.Unlisten, 0)) // who cannot hear it is gone
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
	o.asked = true
}

// take counts a connection and reports whether there is room for it. It refuses a repeated number, which
// would mix up connections.
func (o *outlet) take(id uint64) (room bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.asked || id <= o.last || id > 1<<61 || o.taken >= maxTaken {
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
		from, to := l.outlet.refuse()
		l.mux.Drain(channel, to)
		l.mux.Pump(channel, from)
		l.outlet.lose(1)
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

// refused stands for one direction of a connection that there is no room for: it takes nothing,
// and has nothing to say.
type refused struct{ ended func() }

// refuse makes both directions of one. With both it is counted out.
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

// Close implements io.Closer. Only the first time counts.
func (r refused) Close() error {
	r.ended()
	return nil
}
