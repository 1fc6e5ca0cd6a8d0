package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

const (
	headerTimeout  = 30 * time.Second
	maxHeader      = 64 << 10 // bytes
	maxFields      = 256      // of a header: small ones take many times their length
	upstreamIdle   = 30 * time.Second
	upstreamUnused = 8 // connections to one host
	placeTimeout   = 10 * time.Second
	placeRetry     = 10 * time.Millisecond
)

// Server serves one sandbox's listener. Servers never share connections to the outside: what one policy has
// opened is not available to another.
type Server struct {
	proxy  *Proxy
	policy *Policy
	client Client

	outer, inner *http.Server // the sandbox's connections; the content of TLS that the proxy ended
	secret       *handoff     // from outer to inner
	forwarder    *httputil.ReverseProxy
	transport    *http.Transport

	// places are taken by connections to the outside, from before dialing until they are closed.
	places chan struct{}

	ctx    context.Context //nolint:containedctx // the server's life, for its dials
	cancel context.CancelFunc
	tasks  sync.WaitGroup // listeners and connections

	mu     sync.Mutex // guards what follows
	conns  map[*meter]struct{}
	closed bool
}

// Serve serves a listener under a policy, until Close. The server owns the listener.
func (p *Proxy) Serve(l net.Listener, policy *Policy, c Client) *Server {
	s := &Server{
		proxy: p, policy: policy, client: c, secret: newHandoff(l.Addr()), conns: map[*meter]struct{}{}, places: make(chan struct{}, p.o.Limits.Connections),
	}
	if p.o.Authority != nil {
		p.o.Authority.keep()
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.transport = &http.Transport{
		DialContext: s.dialUpstream, DisableCompression: true, Protocols: onlyHTTP1(),
		TLSClientConfig:     &tls.Config{RootCAs: p.o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: upstreamIdle, MaxIdleConnsPerHost: upstreamUnused,
		ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: maxHeader,
	}
	s.forwarder = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: s.transport, FlushInterval: -1, ModifyResponse: s.answered, ErrorHandler: s.failed,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // errors are in the events
	}
	s.outer = s.http(s.serveForward)
	s.inner = s.http(s.intercepted)
	s.run(s.outer, door{Listener: l, s: s})
	s.run(s.inner, s.secret)
	return s
}

type connKey struct{}

// onlyHTTP1 returns the protocols that both sides speak. With HTTP/2 the proxy would buffer megabytes of
// each unread answer. A server outside that does not read could block other streams of its connection for
// ever.
func onlyHTTP1() *http.Protocols {
	var only http.Protocols
	only.SetHTTP1(true)
	return &only
}

// http makes an HTTP/1 server whose connections are tracked until they end.
func (s *Server) http(h http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: onlyHTTP1(), ReadHeaderTimeout: headerTimeout, IdleTimeout: s.proxy.o.Limits.Idle, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return meterOf(c).during(context.WithValue(ctx, connKey{}, c))
		},
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.tasks.Add(1)
			case http.StateClosed: // the hijacker of a connection calls this itself
				s.tasks.Done()
			case http.StateActive, http.StateIdle, http.StateHijacked:
			}
		},
	}
}

// meterOf returns the sandbox's connection below one that an HTTP server serves, or nil.
func meterOf(c any) *meter {
	switch c := c.(type) {
	case *meter:
		return c
	case *intercept:
		return c.meter
	}
	return nil
}

func (s *Server) run(h *http.Server, l net.Listener) {
	s.tasks.Add(1)
	go func() {
		defer s.tasks.Done()
		_ = h.Serve(l) // ends with Close
	}()
}

// Close closes all connections and waits for their end.
func (s *Server) Close() error {
	s.cancel()
	err := errors.Join(s.outer.Close(), s.inner.Close(), s.secret.Close())
	s.mu.Lock()
	s.closed = true
	left := make([]*meter, 0, len(s.conns))
	for m := range s.conns {
		left = append(left, m)
	}
	s.mu.Unlock()
	for _, m := range left {
		_ = m.Close()
	}
	s.tasks.Wait()
	s.transport.CloseIdleConnections()
	return err
}

// admit admits a new connection, or returns nil if there is no room.
func (s *Server) admit(c net.Conn) *meter {
	m := newMeter(c, s)
	s.mu.Lock()
	full := s.closed || len(s.conns) >= s.proxy.o.Limits.Connections
	if !full {
		s.conns[m] = struct{}{}
	}
	s.mu.Unlock()
	if !full {
		return m
	}
	m.stop()
	return nil
}

func (s *Server) forget(m *meter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, m)
}

// dialUpstream is the only way to the outside. It also ends with the server and with the request that
// started it. The transport would continue it for other requests, but those dial as well.
func (s *Server) dialUpstream(ctx context.Context, _, addr string) (net.Conn, error) {
	t, err := parseAuthority(addr, 0)
	if err != nil {
		return nil, &RefusalError{Outcome: BadRequest, Message: err.Error()}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() //nolint:contextcheck // both the caller and the server end it
	if out, ok := ctx.Value(routeKey{}).(*route); ok {
		defer context.AfterFunc(out.life, cancel)() //nolint:contextcheck // and the request
	}
	if err := s.takePlace(ctx); err != nil {
		return nil, err
	}
	c, err := s.proxy.dial(ctx, s.policy, t)
	if err != nil {
		<-s.places
		return nil, err
	}
	return &outgoing{TCPConn: c, s: s}, nil
}

// takePlace waits for one of the places for outside connections, as many as the sandbox may have
// connections itself. If all are taken, it closes idle connections.
func (s *Server) takePlace(ctx context.Context) error {
	select {
	case s.places <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(placeTimeout)
	defer late.Stop()
	again := time.NewTicker(placeRetry) // a connection becomes idle shortly after its answer has ended
	defer again.Stop()
	for {
		s.transport.CloseIdleConnections()
		select {
		case s.places <- struct{}{}:
			return nil
		case <-again.C:
		case <-late.C:
			return &RefusalError{Outcome: Limited, Message: "the sandbox has too many connections to the outside: close some first"}
		case <-ctx.Done():
			return &RefusalError{Outcome: Aborted, Message: "the client went away, or the sandbox ended"}
		}
	}
}

// outgoing is a connection to the outside, with its place.
type outgoing struct {
	*net.TCPConn
	s    *Server
	once sync.Once
}

// Close implements net.Conn.
func (o *outgoing) Close() error {
	err := o.TCPConn.Close()
	o.once.Do(func() { <-o.s.places })
	return err
}
