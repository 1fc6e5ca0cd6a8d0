package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/publicnet"
)

const (
	// maxMessage bounds one message of a server.
	maxMessage = 16 << 20
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
)

// errPrivate refuses an address. It does not name it, which would show a user the
// internal network.
var errPrivate = errors.New("its address is not public; the operator can allow it in tools.mcp-allow-private")

// web is the way to servers on the network.
type web struct {
	guarded *http.Transport // for users' servers
	open    *http.Transport // for the operator's
}

func newWeb(private []netip.Prefix) *web {
	return &web{open: newTransport(nil), guarded: newTransport(func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address cannot be read: %w", err)
		}
		a := to.Addr().Unmap()
		for _, p := range private {
			if p.Contains(a) {
				return nil
			}
		}
		if !publicnet.Public(to.Addr()) {
			return errPrivate
		}
		return nil
	})}
}

// newTransport returns a transport that uses no proxy of the environment: the check of
// the address would see the proxy's.
func newTransport(check func(network, address string, c syscall.RawConn) error) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: check}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 256 << 10,
	}
}

func (w *web) close() {
	w.guarded.CloseIdleConnections()
	w.open.CloseIdleConnections()
}

// transport returns the way to a server on the network.
func (l *link) transport() (mcp.Transport, error) {
	h := l.server.GetHttp()
	endpoint, err := url.Parse(h.GetUrl())
	if err != nil || endpoint.Host == "" {
		return nil, errors.New("its url is not one")
	}
	base := l.pool.web.guarded
	if l.server.operator {
		base = l.pool.web.open
	}
	carrier := &carrier{base: base, endpoint: endpoint, headers: h.GetHeaders(), bearer: l.bearerOf(), seen: l.calls.see}
	client := &http.Client{Transport: carrier, CheckRedirect: redirect}
	if h.GetSse() {
		return &mcp.SSEClientTransport{Endpoint: h.GetUrl(), HTTPClient: client}, nil
	}
	return &mcp.StreamableClientTransport{Endpoint: h.GetUrl(), HTTPClient: client, MaxEventSize: maxMessage}, nil
}

// redirect follows a few redirects, and none to a connection without encryption.
func redirect(q *http.Request, before []*http.Request) error {
	switch {
	case len(before) > maxRedirects:
		return errors.New("the server redirects too often")
	case before[0].URL.Scheme == "https" && q.URL.Scheme != "https":
		return errors.New("the server redirects to a connection without encryption")
	}
	return nil
}

// carrier sends the requests of one connection, with the server's headers.
type carrier struct {
	base     http.RoundTripper
	endpoint *url.URL
	headers  map[string]string
	bearer   *bearer // nil: no token
	seen     func(message []byte)
}

// RoundTrip implements http.RoundTripper. The server's headers, and the id of the session
// with it, go to its own origin alone: a redirect does not carry them away.
func (t *carrier) RoundTrip(q *http.Request) (*http.Response, error) {
	x := exchangeOf(q.Context())
	q = q.Clone(httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{WroteHeaders: x.sent}))
	if q.URL.Scheme == t.endpoint.Scheme && q.URL.Host == t.endpoint.Host {
		x.name(q.Header)
		for name, value := range t.headers {
			if q.Header.Get(name) == "" {
				q.Header.Set(name, value)
			}
		}
	} else {
		for _, name := range []string{"Authorization", "Cookie", "Mcp-Session-Id"} {
			q.Header.Del(name)
		}
	}
	send := t.base.RoundTrip
	if t.bearer != nil && q.URL.Scheme == t.endpoint.Scheme && q.URL.Host == t.endpoint.Host {
		send = func(q *http.Request) (*http.Response, error) { return t.bearer.send(t.base, q) }
	}
	resp, err := send(q)
	if errors.Is(err, errScope) {
		x.answered(http.StatusForbidden)
	}
	if err != nil {
		return nil, err
	}
	if q.Method == http.MethodPost { // a request for the rest of a stream says nothing of the call's beginning
		x.answered(resp.StatusCode)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		return nil, errLogin
	}
	if err := t.body(resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// body makes a response's messages exact, and bounds them.
func (t *carrier) body(resp *http.Response) error {
	if kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) == "text/event-stream" {
		resp.Body = newLines(resp.Body, "data:", t.seen)
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	_ = resp.Body.Close()
	switch {
	case err != nil:
		return err
	case len(text) > maxMessage:
		return errLong
	}
	text = exact(text)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return nil
}

// errLogin says that the server wants to know its user.
var errLogin = errors.New("the server wants a login (HTTP status 401); log in to it, or set its header Authorization")

// exchange notes how far a request got.
type exchange struct {
	tool   string       // that is called
	left   atomic.Bool  // part of the request was sent
	status atomic.Int32 // of the last response to the request itself
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// name sets the header with the tool's name. The SDK leaves it out when it cannot read the
// arguments, as with a number beyond 64 bits.
func (x *exchange) name(h http.Header) {
	const name = "Mcp-Name"
	if x.tool != "" && h.Get("Mcp-Method") == "tools/call" && h.Get(name) == "" {
		h.Set(name, x.tool)
	}
}

func (x *exchange) sent()               { x.left.Store(true) }
func (x *exchange) answered(status int) { x.status.Store(int32(status)) }

// stateOf returns the state of a server after a failed attempt.
func stateOf(err error) commonv1.McpServerState {
	if errors.Is(err, errLogin) || errors.Is(err, errScope) {
		return needsLogin
	}
	return failed
}

// plain returns an error's text without addresses: they may have secrets in their query.
func plain(err error) string {
	if err == nil {
		return ""
	}
	for _, own := range []error{errLogin, errScope, errPrivate} {
		if errors.Is(err, own) {
			return own.Error()
		}
	}
	var u *url.Error
	if errors.As(err, &u) {
		return cut("it cannot be reached: "+u.Err.Error(), 500)
	}
	return cut(strings.ToValidUTF8(err.Error(), "\uFFFD"), 500)
}
