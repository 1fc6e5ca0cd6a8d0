package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a proxy with servers outside, on loopback.
type world struct {
	t      *testing.T
	proxy  *Proxy
	server *Server
	addr   string // of the proxy

	web, secure *httptest.Server // outside
	roots       *x509.CertPool   // that trust the secure server
	authority   *Authority

	mu     sync.Mutex
	names  map[string][]netip.Addr
	events []Event
	got    []*http.Request // what the outside saw
	bodies []string
	told   chan struct{} // one for each event
	deaf   chan struct{} // the outside reads nothing of a request for /deaf until it is closed
	other  http.HandlerFunc

	counted func(exec string) (Use, error) // Client.Begin; every use is told
}

// opened opens loopback, which a ceiling must do as well as a policy.
func opened(ports ...int) Rule { return Rule{Name: "loopback", Host: "127.0.0.0/8", Ports: ports} }

func port(s *httptest.Server) int {
	u, _ := url.Parse(s.URL)
	n, _ := strconv.Atoi(u.Port())
	return n
}

// newWorld serves the policy that rules makes of the ports of the plain and of the
// secure server. Names are at 127.0.0.1 unless the test says otherwise.
func newWorld(t *testing.T, rules func(plain, secure int) []Rule, change ...func(*world, *Options)) *world {
	t.Helper()
	w := &world{t: t, names: map[string][]netip.Addr{}, told: make(chan struct{}, 10_000), deaf: make(chan struct{})}
	w.counted = func(string) (Use, error) { return Use{Ended: w.observe}, nil }
	w.web = httptest.NewServer(http.HandlerFunc(w.outside))
	t.Cleanup(w.web.Close)
	w.authority = authority(t)
	w.secure = httptest.NewUnstartedServer(http.HandlerFunc(w.outside))
	outer := authority(t)
	w.secure.TLS = &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return outer.certificate(h.ServerName)
	}}
	w.secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	w.secure.StartTLS()
	t.Cleanup(w.secure.Close)
	t.Cleanup(func() { close(w.deaf) })
	w.roots = x509.NewCertPool()
	w.roots.AppendCertsFromPEM(outer.PEM())
	a, b := port(w.web), port(w.secure)
	o := Options{
		Ceiling: []Rule{opened(a, b), {Host: "*", Ports: []int{a, b, 22, 80, 443}}}, Authority: w.authority, Roots: w.roots, Resolve: w.resolve,
		Limits: Limits{Connections: 64, Idle: time.Minute, Total: time.Hour, Bytes: 1 << 30}, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(w, &o)
	}
	var err error
	if w.proxy, err = New(o); err != nil {
		t.Fatal(err)
	}
	policy, err := w.proxy.Policy(rules(a, b))
	if err != nil {
		t.Fatal(err)
	}
	w.serve(policy)
	return w
}

func (w *world) serve(policy *Policy) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.addr = l.Addr().String()
	w.server = w.proxy.Serve(l, policy, Client{Tenant: "t", Session: "s", Begin: w.counted})
	w.t.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := OpenAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w *world) observe(e Event) {
	if e.Outcome == Opened {
		return
	}
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	w.told <- struct{}{}
}

// event waits for the next event.
func (w *world) event() Event {
	w.t.Helper()
	select {
	case <-w.told:
	case <-time.After(20 * time.Second):
		w.t.Fatal("no event came")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.events[0]
	w.events = w.events[1:]
	return e
}

func (w *world) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok := w.names[name]; ok {
		return slices.Clone(a), nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// outside is every server outside: it remembers what it saw.
func (w *world) outside(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/deaf" {
		<-w.deaf
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	w.got = append(w.got, r.Clone(context.WithoutCancel(r.Context())))
	w.bodies = append(w.bodies, string(body))
	w.mu.Unlock()
	if w.other != nil {
		w.other(rw, r)
		return
	}
	fmt.Fprintf(rw, "%s %s %s", r.Method, r.Host, r.URL.Path)
}

// seen is what the outside saw.
func (w *world) seen() []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got)
}

// client is one inside that uses the proxy and trusts pool.
func (w *world) client(pool *x509.CertPool) *http.Client {
	tr := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr, User: url.UserPassword("call-1", "exec")}), TLSClientConfig: &tls.Config{RootCAs: pool},
	}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

// inside trusts the node's authority alone.
func (w *world) inside() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(w.authority.PEM())
	return p
}

// ask asks by a client and returns the status and the body.
func (w *world) ask(c *http.Client, method, url string, header ...string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(b)
}

// raw sends bytes to the proxy and returns the first answer, and the connection.
func (w *world) raw(text string) (*http.Response, net.Conn, *bufio.Reader) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Fatal(err)
	}
	b := bufio.NewReader(c)
	req := &http.Request{Method: http.MethodGet}
	if len(text) > 7 && text[:7] == "CONNECT" {
		req.Method = http.MethodConnect
	}
	resp, err := http.ReadResponse(b, req)
	if err != nil {
		w.t.Fatalf("the proxy's answer to %q: %v", text, err)
	}
	return resp, c, b
}

// tls is a connection to a host inside TLS that the proxy ends.
func (w *world) tls(host string, port int) *tls.Conn {
	w.t.Helper()
	resp, c, _ := w.raw(fmt.Sprintf("CONNECT %s:%d HTTP/1.1\r\nHost: x\r\n\r\n", host, port))
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("CONNECT: %d", resp.StatusCode)
	}
	return tls.Client(c, &tls.Config{RootCAs: w.inside(), ServerName: host, MinVersion: tls.VersionTLS12})
}

// until waits for what comes soon.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	late := time.After(20 * time.Second)
	for !is() {
		select {
		case <-again.C:
		case <-late:
			w.t.Fatalf("never: %s", what)
		}
	}
}
