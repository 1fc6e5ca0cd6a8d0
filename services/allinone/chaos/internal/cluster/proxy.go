package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Proxy passes connections on, and can cut them, and stall them.
type Proxy struct {
	listener net.Listener
	network  string
	target   string

	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
	flows chan struct{} // closed as long as bytes are passed on
	work  sync.WaitGroup
}

// newProxy listens on a free loopback port and passes every connection on to target, until Close.
func newProxy(ctx context.Context, network, target string) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, network: network, target: target, conns: map[net.Conn]bool{}, flows: make(chan struct{})}
	close(p.flows)
	p.work.Go(func() { p.accept(ctx) })
	return p, nil
}

// Address returns the address of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

func (p *Proxy) accept(ctx context.Context) {
	for {
		from, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.work.Go(func() { p.pass(ctx, from) })
		}
	}
}

// pass copies both ways until one end is closed.
func (p *Proxy) pass(ctx context.Context, from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := new(net.Dialer).DialContext(ctx, p.network, p.target)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if !p.add(from, to) {
		return
	}
	defer p.remove(from, to)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, gated{p, to})
		_ = from.Close()
	})
	_, _ = io.Copy(to, gated{p, from})
	_ = to.Close()
	back.Wait()
}

func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.ended
}

func (p *Proxy) remove(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// Cut closes all connections; new ones are passed on as before. It returns how many there were.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	return len(p.conns) / 2
}

// gated reads from a connection only while the proxy passes bytes on.
type gated struct {
	proxy *Proxy
	from  io.Reader
}

func (g gated) Read(b []byte) (int, error) {
	n, err := g.from.Read(b)
	g.proxy.mu.Lock()
	flows := g.proxy.flows
	g.proxy.mu.Unlock()
	<-flows
	return n, err
}

// Stall stops passing bytes on, over connections old and new, until Flow. Neither end is told.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flows:
		p.flows = make(chan struct{})
	default: // stalled already
	}
}

// Flow passes bytes on again.
func (p *Proxy) Flow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flows:
	default:
		close(p.flows)
	}
}

// Close cuts everything and waits for the goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Flow()
	p.Cut()
	p.work.Wait()
}
