package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
)

// route is the decision about a request.
type route struct {
	*record
	to       target
	scheme   string
	rule     *rule
	looked   bool // whether its method or path was decisive
	secret   injection
	sent     atomic.Int64
	received atomic.Int64
	address  atomic.Pointer[netip.Addr]
	life     context.Context //nolint:containedctx // ends with the request, also for detached work of the transport
}

type routeKey struct{}

func routeOf(ctx context.Context) *route { return ctx.Value(routeKey{}).(*route) } //nolint:forcetypeassert // every forwarded request has one

// serveForward handles requests over a sandbox's connection.
func (s *Server) serveForward(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		s.connect(w, r)
		return
	}
	rec := s.ask(r, KindHTTP, execOf(r))
	defer rec.end()
	t, err := address(r)
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
	s.send(w, r, rec, t, false)
}

// address returns the target of a request in proxy form. The Host header does not count.
func address(r *http.Request) (target, error) {
	switch {
	case r.URL.Host == "" || r.URL.Opaque != "":
		return target{}, errors.New("this is a proxy: ask for http://host/path, or CONNECT to host:port")
	case r.URL.User != nil:
		return target{}, errors.New("the address has a user name or a password: leave them out")
	case r.URL.Scheme != "http":
		return target{}, fmt.Errorf("the proxy does not speak %.16q: use http://, or CONNECT", r.URL.Scheme)
	}
	return parseAuthority(r.URL.Host, 80)
}

// intercepted handles requests inside TLS that the proxy ended.
func (s *Server) intercepted(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*intercept) //nolint:forcetypeassert // only these are handed over
	rec := s.ask(r, KindIntercept, c.exec)
	defer rec.end()
	rec.to(c.to)
	if rec.rejectUnseen(w, r) {
		return
	}
	if r.URL.Opaque != "" { // it would become the request's target outside, including the host
		rec.refuse(w, &RefusalError{Outcome: BadRequest, Message: "the address must be a path, such as /x"})
		return
	}
	t, err := parseAuthority(r.Host, 443)
	if err != nil || t != c.to || r.Method == http.MethodConnect || r.URL.User != nil || r.URL.Host != "" && r.URL.Scheme != "https" {
		rec.refuse(w, &RefusalError{Outcome: BadRequest, Message: "the request is for another host than the connection, which is for " + c.to.authority()})
		return
	}
	s.send(w, r, rec, t, true)
}

// send decides on a request and forwards it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, rec *record, t target, secret bool) {
	rec.to(t)
	if repeats(r.Method) {
		rec.refuse(w, deny("%.32s is not allowed: its answer shows what was put into the request", r.Method))
		return
	}
	rule, to, err := s.policy.request(t, r.Method, r.URL.EscapedPath(), r.URL.Path, secret)
	if err != nil {
		rec.refuse(w, err)
		return
	}
	rec.to(to)
	rec.Rule, rec.Credential = rule.Name, rule.Credential
	out := &route{record: rec, to: to, scheme: "http", rule: rule, looked: rule.sees() || s.policy.ceilingSees(to)}
	if rule.TLS != Pass {
		out.scheme = "https"
	}
	s.forward(w, r, out)
}

func (s *Server) forward(w http.ResponseWriter, r *http.Request, out *route) {
	life, end := context.WithCancel(r.Context())
	defer end()
	out.life = life
	ctx := httptrace.WithClientTrace(context.WithValue(r.Context(), routeKey{}, out), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if a, err := netip.ParseAddrPort(i.Conn.RemoteAddr().String()); err == nil {
				addr := a.Addr().Unmap()
				out.address.Store(&addr)
			}
		},
	})
	complete := false
	defer func() { // also if the forwarder panics, which is how it aborts an answer
		out.Sent, out.Received = out.sent.Load(), out.received.Load()
		if a := out.address.Load(); a != nil {
			out.Address = *a
		}
		if !complete {
			out.Outcome, out.Message = Aborted, "the connection was cut off"
		}
		if why := limitOf(r); why != nil && out.Outcome != Done {
			out.fail(why)
		}
	}()
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &sentBody{countedBody{ReadCloser: r.Body, n: &out.sent}}
	}
	var err error
	if out.secret, err = s.proxy.secretFor(out.rule, out.to); err != nil { // before anything is sent
		out.refuse(w, err)
		complete = true
		return
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // else an early answer discards the unsent rest of the request
	s.forwarder.ServeHTTP(final{w}, r)
	complete = true
}

// final drops informational responses: their headers are unchecked, and would be held until the client has
// read them. The HTTP server itself sends 100 Continue. final also keeps the server from guessing a content
// type that the host did not name.
type final struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (f final) WriteHeader(code int) {
	if code < http.StatusOK {
		return
	}
	if h := f.Header(); h.Get("Content-Type") == "" {
		h["Content-Type"] = nil // else the HTTP server would guess it from the body
	}
	f.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (f final) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// limitOf returns the limit that ended a request's connection, or nil.
func limitOf(r *http.Request) error {
	if m := meterOf(r.Context().Value(connKey{})); m != nil {
		if why := m.why.Load(); why != nil {
			return why
		}
	}
	return nil
}

// rewrite writes the request anew. Headers of the client's connection are removed before the credential is
// added.
func rewrite(p *httputil.ProxyRequest) {
	to := routeOf(p.In.Context())
	u := p.Out.URL
	u.Scheme, u.Host, u.User, u.Opaque = to.scheme, to.to.header(to.scheme), nil, "" // an opaque part would replace all others
	u.RawQuery = p.In.URL.RawQuery                                                   // unchanged: no decision depends on it
	p.Out.Host = u.Host
	p.Out.Trailer = nil
	for _, h := range []string{"Connection", "Upgrade", "Http2-Settings"} { // after an upgrade the proxy could not check requests
		p.Out.Header.Del(h)
	}
	for name := range p.Out.Header {
		if strings.HasPrefix(name, "Proxy-") {
			p.Out.Header.Del(name)
		}
	}
	maps.DeleteFunc(p.Out.Header, func(name string, values []string) bool { return overrides(name, values, to.looked) })
	if _, set := p.In.Header["User-Agent"]; !set {
		p.Out.Header["User-Agent"] = nil // none, rather than Go's default
	}
	to.secret.put(p.Out.Header)
}

// answered checks an answer before it is passed on.
func (s *Server) answered(r *http.Response) error {
	if r.StatusCode < http.StatusOK { // an unrequested upgrade, or an invalid status, on which the HTTP server would panic
		return errors.New("the answer has no final status")
	}
	out := routeOf(r.Request.Context())
	if n := fields(r.Header); n > maxFields {
		return &RefusalError{Outcome: Failed, Message: fmt.Sprintf("%s answered with %d header fields, more than %d", out.to.authority(), n, maxFields)}
	}
	out.Status = r.StatusCode
	r.Body = &countedBody{ReadCloser: r.Body, n: &out.received}
	return nil
}

var errGone = &RefusalError{Outcome: Aborted, Message: "the client went away, or the sandbox ended"}

// failed answers a request whose forwarding failed.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	out := routeOf(r.Context())
	var no *RefusalError
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &no):
	case r.Context().Err() != nil:
		no = errGone
	case errors.As(err, &cert), errors.As(err, &unknown):
		no = &RefusalError{Outcome: Failed, Message: "the certificate of " + out.to.host() + " is not valid for it, or its issuer is not trusted here"}
	case errors.As(err, &timeout) && timeout.Timeout():
		no = &RefusalError{Outcome: Failed, Message: out.to.authority() + " does not answer in time"}
	default:
		no = &RefusalError{Outcome: Failed, Message: out.to.authority() + " did not answer as a server of " + strings.ToUpper(out.scheme) + " does"}
	}
	out.Status = 0
	out.refuse(w, no)
}

// statuses are the answers of the proxy itself.
var statuses = map[Outcome]struct {
	code  int
	error string // of RFC 9209
}{
	Denied:         {http.StatusForbidden, "http_request_denied"},
	RefusedAddress: {http.StatusForbidden, "destination_ip_prohibited"},
	BadRequest:     {http.StatusBadRequest, "http_request_error"},
	Failed:         {http.StatusBadGateway, "destination_unavailable"},
	Limited:        {http.StatusServiceUnavailable, "proxy_internal_response"},
	Aborted:        {http.StatusBadGateway, "connection_terminated"},
}

// refuse sends an answer of the proxy itself and records it.
func (r *record) refuse(w http.ResponseWriter, err error) {
	r.fail(err)
	r.answer(w, statuses[r.Outcome].code)
}

func (r *record) answer(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Proxy-Status", "fairlead; error="+statuses[r.Outcome].error)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, r.Message+"\n") //nolint:gosec // it is sent as plain text
}

// rejectUnseen refuses a request unseen: one too many, or with too many header fields.
func (r *record) rejectUnseen(w http.ResponseWriter, req *http.Request) bool {
	if r.banned != nil {
		w.Header().Set("Connection", "close")
		r.refuse(w, r.banned)
		return true
	}
	n := fields(req.Header)
	if n <= maxFields {
		return false
	}
	req.Header = nil // the HTTP server keeps the request until its body has ended
	r.fail(&RefusalError{Outcome: BadRequest, Message: fmt.Sprintf("the request has %d header fields, more than %d", n, maxFields)})
	w.Header().Set("Connection", "close")
	r.answer(w, http.StatusRequestHeaderFieldsTooLarge)
	return true
}

func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

// execOf returns the command that a client names: the user name of its proxy's address. It decides only
// where the request is counted and reported.
func execOf(r *http.Request) string {
	as := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	name, _, _ := as.BasicAuth()
	if len(name) > 256 || strings.ContainsFunc(name, func(x rune) bool { return x <= ' ' || x > '~' }) {
		return ""
	}
	return name
}

func method(r *http.Request) string { return r.Method[:min(len(r.Method), 32)] }

// countedBody counts the bytes of a body. The transport reads a sent body in its own goroutine.
type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *countedBody) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// sentBody is the body of a request. A failure to read it is not the host's fault.
type sentBody struct{ countedBody }

func (s *sentBody) Read(b []byte) (int, error) {
	n, err := s.countedBody.Read(b)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET):
		return n, errGone
	}
	return n, &RefusalError{Outcome: BadRequest, Message: "the body of the request cannot be read"}
}
