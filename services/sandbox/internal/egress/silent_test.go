package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// Every connection is told of, also one over which nothing is asked for.
func TestConnectionsWithoutARequestAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(w *world)
		want Outcome
		host string
	}{
		"nothing":                {func(w *world) { w.say("") }, Aborted, ""},
		"no HTTP":                {func(w *world) { w.say("SSH-2.0-x\r\n") }, BadRequest, ""},
		"half a request":         {func(w *world) { w.say("GET http://a.example.com/ HTTP/1.1\r\nHost: a") }, BadRequest, ""},
		"TLS and nothing inside": {func(w *world) { w.handshake("cut.example.com") }, Aborted, "cut.example.com"},
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
	w := newWorld(t, cut)
	refused := &RefusalError{Outcome: Limited, Message: "that is enough"}
	w.server.client.Begin = func(string) (context.Context, func(Event), error) { return nil, w.observe, refused }
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
