package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// Every connection is told of, also one over which nothing is asked for.
func TestConnectionsWithoutARequestAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(w *world)
		want Outcome
		host string
	}{
		"nothing":                        {func(w *world) { w.say("") }, Aborted, ""},
		"no HTTP":                        {func(w *world) { w.say("SSH-2.0-x\r\n") }, BadRequest, ""},
		"half a request":                 {func(w *world) { w.say("GET http://a.example.com/ HTTP/1.1\r\nHost: a") }, BadRequest, ""},
		"no HTTP after a request":        {func(w *world) { w.sayAfter("SSH-2.0-x\r\n\r\n") }, BadRequest, ""},
		"an expectation after a request": {func(w *world) { w.sayAfter("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n") }, BadRequest, ""},
		"TLS and nothing inside":         {func(w *world) { w.handshake("cut.example.com") }, Aborted, "cut.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cut)
			tc.do(w)
			if e := w.event(); e.Outcome != tc.want || e.Host != tc.host || e.Message == "" {
				t.Errorf("it is told as %+v", e)
			}
		})
	}
}

// sayAfter makes a request, which is told, and says something that ends the connection.
func (w *world) sayAfter(text string) {
	w.t.Helper()
	resp, c, b := w.raw(fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web)))
	_, err := io.Copy(io.Discard, resp.Body)
	if e := w.event(); err != nil || e.Outcome != Done {
		w.t.Errorf("the request is told as %+v, %v", e, err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Error(err)
	}
	if text == "" {
		_ = c.Close()
	}
	_, _ = io.Copy(io.Discard, b)
}

// A connection that waits is the command's that ran when it began to.
func TestAConnectionIsWhoseItWasWhenItBegan(t *testing.T) {
	begun := make(chan string, 16)
	w := newWorld(t, cut, func(w *world, _ *Options) {
		w.counted = func(exec string, asked bool) (Use, error) {
			begun <- fmt.Sprint(exec, " ", asked)
			return Use{Exec: cmp.Or(exec, "running"), Ended: w.observe}, nil
		}
	})
	next := func(want string) {
		t.Helper()
		if got := <-begun; got != want {
			t.Fatalf("begun is %q, not %q", got, want)
		}
	}
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	next(" false") // before anything is sent
	_ = c.Close()
	if e := w.event(); e.Exec != "running" || e.Outcome != Aborted || strings.Contains(e.Message, "client") {
		t.Errorf("it is told as %+v", e)
	}
	_, c, _ = w.raw(fmt.Sprintf("CONNECT cut.example.com:%d HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic Y2FsbC0xOmV4ZWM=\r\n\r\n", port(w.secure)))
	next(" false")
	next("call-1 true")
	inside := tls.Client(c, &tls.Config{RootCAs: w.inside(), ServerName: "cut.example.com", MinVersion: tls.VersionTLS12})
	if err := inside.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	next("call-1 false")
	_ = inside.Close()
	if e := w.event(); e.Exec != "call-1" || e.Outcome != Aborted || e.Kind != KindIntercept {
		t.Errorf("TLS is told as %+v", e)
	}
	w.sayAfter("")
	next(" false")
	next("running true")
	next("running false") // it waits for another one
	w.until("the connections are closed", func() bool { w.server.mu.Lock(); defer w.server.mu.Unlock(); return len(w.server.conns) == 0 })
	if len(w.told) > 0 || len(begun) > 0 {
		t.Errorf("besides, %+v is told", w.event())
	}
}

// A connection is told of when nothing else over it is.
func TestOnlyAConnectionWithoutRequestsHasASpan(t *testing.T) {
	spans, before := tracetest.NewInMemoryExporter(), otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	w := newWorld(t, cut)
	w.sayAfter("")
	w.until("the connection is closed", func() bool { w.server.mu.Lock(); defer w.server.mu.Unlock(); return len(w.server.conns) == 0 })
	if n := len(spans.GetSpans()); n != 1 {
		t.Errorf("a request has %d spans", n)
	}
	w.say("")
	if e := w.event(); e.Outcome != Aborted || len(spans.GetSpans()) != 2 {
		t.Errorf("%+v, and %d spans", e, len(spans.GetSpans()))
	}
}

// What a command has open ends with it, whatever the outside does, and what it holds is given back.
func TestTheEndOfACommandCutsItsConnections(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = deaf.Close() }()
	_, deafPort, err := net.SplitHostPort(deaf.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a tunnel":                  "CONNECT 127.0.0.1:DEAF HTTP/1.1\r\nHost: x\r\n\r\nsecret",
		"a request":                 "GET http://127.0.0.1:DEAF/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"a request, and half a one": "GET http://127.0.0.1:DEAF/ HTTP/1.1\r\nHost: x\r\n\r\nGET http://",
		"nothing":                   "",
	} {
		t.Run(name, func(t *testing.T) {
			command, end := context.WithCancel(t.Context())
			begun, dialed := make(chan bool, 8), make(chan Event, 8)
			rule := opened(deaf.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // it listens by TCP
			if name == "a tunnel" {
				rule.TLS = Raw
			}
			w := newWorld(t, func(int, int) []Rule { return []Rule{rule} }, func(w *world, o *Options) {
				o.Ceiling = []Rule{opened(rule.Ports...)}
				w.counted = func(_ string, asked bool) (Use, error) {
					begun <- asked
					return Use{Context: command, Ended: w.observe, Dialed: func(e Event) { dialed <- e }}, nil
				}
			})
			c, err := net.Dial("tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, strings.ReplaceAll(text, "DEAF", deafPort)); err != nil {
				t.Fatal(err)
			}
			<-begun
			want := "nothing was asked for over the connection"
			if text != "" {
				if e := <-dialed; e.Host != "127.0.0.1" || strconv.Itoa(int(e.Port)) != deafPort || e.Rule == "" {
					t.Errorf("dialed is %+v", e)
				}
				want = errCut.Message
			}
			end()
			if e := w.event(); e.Outcome != Aborted || e.Message != want {
				t.Errorf("it is told as %+v", e)
			}
			w.until("all is given back", func() bool {
				w.server.mu.Lock()
				defer w.server.mu.Unlock()
				return len(w.server.conns) == 0 && len(w.server.places) == 0
			})
			if len(w.told) > 0 {
				t.Errorf("besides, %+v is told", w.event())
			}
		})
	}
}

// cut ends TLS to one host, and opens loopback.
func cut(plain, secure int) []Rule {
	return []Rule{opened(plain), {Host: "cut.example.com", Ports: []int{secure}, TLS: Intercept}}
}

// say sends bytes to the proxy and closes the connection.
func (w *world) say(text string) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Error(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
}

// handshake begins TLS that the proxy ends, and ends it.
func (w *world) handshake(host string) {
	w.t.Helper()
	c := w.tls(host, port(w.secure))
	if err := c.HandshakeContext(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	_ = c.Close()
}

// Whoever counts requests may have one refused, of any kind.
func TestRequestsAreRefusedWhenWhoCountsThemSaysSo(t *testing.T) {
	w := newWorld(t, cut, func(w *world, _ *Options) {
		w.counted = func(string, bool) (Use, error) {
			return Use{Ended: w.observe}, &RefusalError{Outcome: Limited, Message: "that is enough"}
		}
	})
	status, body := w.ask(w.client(nil), http.MethodGet, "http://"+strings.TrimPrefix(w.web.URL, "http://")+"/")
	if status != http.StatusServiceUnavailable || body != "that is enough\n" {
		t.Errorf("a request: %d %q", status, body)
	}
	if resp, _, _ := w.raw("CONNECT a.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a tunnel: %d", resp.StatusCode)
	}
	for range 2 {
		if e := w.event(); e.Outcome != Limited {
			t.Errorf("it is told as %+v", e)
		}
	}
	if n := len(w.seen()); n > 0 {
		t.Errorf("%d requests came out", n)
	}
}
