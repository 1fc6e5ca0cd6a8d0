package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// helloTimeout is how long a client may take to begin TLS.
const helloTimeout = 10 * time.Second

// established is the answer after which a connection belongs to the tunnel.
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// connect handles CONNECT.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	rec := s.ask(r, KindTunnel, execOf(r))
	defer rec.end()
	t, err := connectAddress(r)
	if err == nil {
		rec.to(t) // also reported if it is turned away
	}
	if rec.rejectUnseen(w, r) {
		return
	}
	if err != nil {
		rec.refuse(w, &RefusalError{Outcome: BadRequest, Message: err.Error()})
		return
	}
	rule, err := s.policy.connect(t)
	if err != nil {
		rec.refuse(w, err)
		return
	}
	rec.Rule = rule.Name
	if rule.TLS == Intercept {
		s.intercept(w, rec, t) //nolint:contextcheck // the content outlives the request
		return
	}
	out, err := s.dialUpstream(r.Context(), "tcp", t.authority())
	if why := limitOf(r); why != nil && err != nil {
		err = why
	}
	if err != nil {
		rec.refuse(w, err)
		return
	}
	defer func() { _ = out.Close() }()
	if a, err := netip.ParseAddrPort(out.RemoteAddr().String()); err == nil {
		rec.Address = a.Addr().Unmap()
	}
	in, ok := s.hijack(w, rec)
	if !ok {
		return
	}
	defer s.tasks.Done()
	defer func() { _ = in.Close() }()
	s.tunnel(rec, rule, t, in, out)
}

func connectAddress(r *http.Request) (target, error) {
	if r.URL.Host == "" || r.URL.Path != "" || r.URL.RawQuery != "" || r.URL.User != nil || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return target{}, errors.New("CONNECT takes host:port and nothing else")
	}
	return parseAuthority(r.URL.Host, 0)
}

// hijack takes the connection over and tells the client. If it returns true, the caller owns the connection
// and a task of the server.
func (s *Server) hijack(w http.ResponseWriter, rec *record) (*taken, bool) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		rec.refuse(w, err)
		return nil, false
	}
	m := c.(*meter) //nolint:forcetypeassert // the door admits only meters
	t := &taken{meter: m}
	if n := buffered.Reader.Buffered(); n > 0 {
		early, _ := buffered.Peek(n)
		t.early = append(t.early, early...)
	}
	// The HTTP server has set deadlines for its own purposes.
	if err = c.SetDeadline(time.Time{}); err == nil {
		_, err = io.WriteString(c, established)
	}
	if err != nil {
		rec.Outcome, rec.Message = Aborted, "the client went away"
		if why := m.why.Load(); why != nil {
			rec.fail(why)
		}
		_ = c.Close()
		s.tasks.Done()
		return nil, false
	}
	return t, true
}

// taken is a hijacked connection, with the data already read from it.
type taken struct {
	*meter
	early []byte
}

func (t *taken) Read(b []byte) (int, error) {
	if len(t.early) > 0 {
		n := copy(b, t.early)
		t.early = t.early[n:]
		return n, nil
	}
	return t.meter.Read(b)
}

// tunnel copies bytes until both sides have ended, or the client's connection has: a side that does not
// read blocks nothing.
func (s *Server) tunnel(rec *record, r *rule, t target, in *taken, out net.Conn) {
	defer context.AfterFunc(in.ctx, func() { _ = in.Close(); _ = out.Close() })()
	if r.TLS == Pass {
		if err := s.checkHello(in, t, r); err != nil {
			rec.fail(err)
			return
		}
	}
	var back sync.WaitGroup
	var received int64
	back.Go(func() {
		var err error
		if received, err = io.Copy(in, out); err != nil || in.CloseWrite() != nil {
			_ = in.Close()
		}
	})
	sent, err := io.Copy(out, in)
	if half, ok := out.(interface{ CloseWrite() error }); err != nil || !ok || half.CloseWrite() != nil {
		_ = out.Close()
	}
	back.Wait()
	rec.Sent, rec.Received = sent, received
	if why := in.why.Load(); why != nil {
		rec.fail(why)
	} else if s.ctx.Err() != nil { // a reset is a normal end: many programs reset when they have read enough
		rec.Outcome, rec.Message = Aborted, "the connection was cut off"
	}
}

// checkHello reads the beginning of TLS, which must name the requested host. Otherwise a server of many
// hosts could answer for a host that no rule names. The data is then read again.
func (s *Server) checkHello(in *taken, t target, r *rule) error {
	_ = in.SetReadDeadline(time.Now().Add(helloTimeout))
	tape := &tape{taken: in}
	var name string
	seen := errors.New("seen")
	err := tls.Server(tape, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, seen
	}}).HandshakeContext(s.ctx)
	_ = in.SetReadDeadline(time.Time{})
	in.early = append(tape.read, in.early...)
	gone := errors.Is(err, io.EOF) && len(tape.read) == 0
	switch cut := s.cut(in, gone); {
	case cut != nil:
		return cut
	case !errors.Is(err, seen):
		return deny("rule %q lets TLS through, and this is not TLS: set the rule's tls to raw for other protocols", r.Name)
	case t.addr.IsValid():
		return nil
	}
	if named, err := parseHost(name); err != nil || named.name != t.name {
		return deny("the TLS inside is for %.255q, and the connection for %s: rule %q allows only that", name, t.host(), r.Name)
	}
	return nil
}

// cut returns why a tunnel ended before TLS began, or nil if the reason is the client's data.
func (s *Server) cut(in *taken, gone bool) error {
	if why := in.why.Load(); why != nil {
		return why
	}
	switch {
	case s.ctx.Err() != nil:
		return &RefusalError{Outcome: Aborted, Message: "the connection was cut off"}
	case gone:
		return &RefusalError{Outcome: Aborted, Message: "the client went away before it began TLS"}
	}
	return nil
}

// tape records what is read and discards what is written.
type tape struct {
	*taken
	read []byte
}

func (t *tape) Read(b []byte) (int, error) {
	n, err := t.taken.Read(b)
	t.read = append(t.read, b[:n]...)
	return n, err
}

// Write implements net.Conn.
func (t *tape) Write(b []byte) (int, error) { return len(b), nil }

// intercept ends the client's TLS and passes the content to the inner server.
func (s *Server) intercept(w http.ResponseWriter, rec *record, t target) {
	cert, err := s.proxy.certificate(t)
	if err != nil {
		rec.refuse(w, err)
		return
	}
	in, ok := s.hijack(w, rec)
	if !ok {
		return
	}
	defer s.tasks.Done()
	begun := false
	c := tls.Server(in, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			begun = true
			if named, err := parseHost(h.ServerName); h.ServerName != "" && (err != nil || named.name != t.host()) {
				return nil, errOtherHost
			}
			return cert, nil
		},
	})
	ctx, cancel := context.WithTimeout(s.ctx, helloTimeout)
	defer cancel()
	err = c.HandshakeContext(ctx)
	cut := s.cut(in, errors.Is(err, io.EOF) && !begun)
	switch {
	case cut != nil:
		rec.fail(cut)
	case errors.Is(err, errOtherHost):
		rec.fail(deny("the TLS inside is for another host than the connection, which is for %s", t.host()))
	case err != nil:
		rec.fail(&RefusalError{Outcome: Failed, Message: "the client does not speak TLS, or does not trust the node's authority: see SSL_CERT_FILE"})
	case s.secret.pass(&intercept{Conn: c, meter: in.meter, to: t, exec: rec.Exec}):
		rec.inside, rec.Outcome = true, Opened
		return
	default:
		rec.Outcome, rec.Message = Aborted, "the connection was cut off"
	}
	_ = in.Close()
}

var errOtherHost = errors.New("another host")

// intercept is the content of a TLS connection.
type intercept struct {
	net.Conn
	meter *meter
	to    target
	exec  string // the command that asked for the connection
}

func (p *Proxy) certificate(t target) (*tls.Certificate, error) {
	if p.o.Authority == nil {
		return nil, deny("this node intercepts no TLS: it has no authority of its own")
	}
	c, err := p.o.Authority.certificate(t.host())
	if err != nil {
		p.o.Log.Error("cannot intercept", "error", err)
		return nil, &RefusalError{Outcome: Failed, Message: "the certificate for " + t.host() + " could not be made"}
	}
	return c, nil
}
