package egress

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// meter is a client's connection that is closed when it is idle, old or too busy. All work for it ends with
// it.
type meter struct {
	net.Conn
	s         *Server
	ctx       context.Context //nolint:containedctx // the connection's life
	end       context.CancelFunc
	idle      *time.Timer
	total     *time.Timer
	remaining atomic.Int64 // bytes
	why       atomic.Pointer[RefusalError]
	once      sync.Once
}

func newMeter(c net.Conn, s *Server) *meter {
	m := &meter{Conn: c, s: s}
	m.ctx, m.end = context.WithCancel(s.ctx)
	l := s.proxy.o.Limits
	m.remaining.Store(l.Bytes)
	m.idle = time.AfterFunc(l.Idle, func() { m.limit("the connection was idle for " + l.Idle.String()) })
	m.total = time.AfterFunc(l.Total, func() { m.limit("the connection is older than " + l.Total.String()) })
	return m
}

// limit ends the connection for a reason.
func (m *meter) limit(why string) {
	m.why.CompareAndSwap(nil, &RefusalError{Outcome: Limited, Message: why + ": make a new one"})
	_ = m.Close()
}

// errCut is why a connection was closed that was still open when its command had ended.
var errCut = &RefusalError{Outcome: Aborted, Message: "the command ended while it was open"}

// cut closes the connection because its command has ended.
func (m *meter) cut() {
	m.why.CompareAndSwap(nil, errCut)
	_ = m.Close()
}

func (m *meter) count(n int) {
	if n <= 0 {
		return
	}
	m.idle.Reset(m.s.proxy.o.Limits.Idle)
	if m.ctx.Err() != nil { // it was closed meanwhile; without this it would be kept until the timeout
		m.idle.Stop()
	}
	if m.remaining.Add(-int64(n)) < 0 {
		m.limit("the connection has reached its byte limit")
	}
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.count(n)
	return n, err
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	m.count(n)
	return n, err
}

// Close closes the connection. Only the first call counts.
func (m *meter) Close() (err error) {
	m.once.Do(func() {
		err = m.Conn.Close()
		m.stop()
		m.s.forget(m)
	})
	return err
}

// stop ends the work for the connection. It ends the context first, so that count sees that or comes before
// it.
func (m *meter) stop() {
	m.end()
	m.idle.Stop()
	m.total.Stop()
}

// during returns a context that also ends with the connection. The HTTP server notices the end of a
// connection only after it has read a whole request.
func (m *meter) during(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(m.ctx, cancel)
	return ctx
}

// CloseWrite ends the writing side, as TCP can.
func (m *meter) CloseWrite() error {
	if c, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return m.Close()
}

// handoff is a listener of connections that already exist.
type handoff struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	addr  net.Addr
}

func newHandoff(addr net.Addr) *handoff {
	return &handoff{conns: make(chan net.Conn), done: make(chan struct{}), addr: addr}
}

// pass passes a connection on; it returns false if the handoff is closed.
func (h *handoff) pass(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		return false
	}
}

// Accept implements net.Listener.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handoff) Addr() net.Addr { return h.addr }
