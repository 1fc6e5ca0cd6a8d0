package pgserver

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// Switch is a loopback port that leads to one of several servers, like an address that moves at a failover.
// Existing connections do not move.
type Switch struct {
	listener net.Listener
	socket   atomic.Value // of the server that it leads to
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil once it is closed
}

// NewSwitch returns a switch that leads to a server. The caller must close it.
func NewSwitch(ctx context.Context, to *Server) (*Switch, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Switch{listener: l, conns: map[net.Conn]bool{}}
	w.To(to)
	w.running.Go(w.accept)
	return w, nil
}

// To directs new connections to a server.
func (w *Switch) To(s *Server) { w.socket.Store(s.Socket()) }

// URL returns the URL of a database behind the switch.
func (w *Switch) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Host: w.listener.Addr().String(), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Close ends the switch and its connections.
func (w *Switch) Close() error {
	err := w.listener.Close()
	w.mu.Lock()
	for c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
	w.mu.Unlock()
	w.running.Wait()
	return err
}

func (w *Switch) accept() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		socket, _ := w.socket.Load().(string)
		to, err := new(net.Dialer).Dial("unix", socket)
		if err != nil || !w.keep(from, to) {
			_ = from.Close()
			continue
		}
		w.running.Go(func() { w.copy(from, to) })
		w.running.Go(func() { w.copy(to, from) })
	}
}

// keep registers connections for Close.
func (w *Switch) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.conns == nil {
			_ = c.Close()
			continue
		}
		w.conns[c] = true
	}
	return w.conns != nil
}

func (w *Switch) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, from)
}
