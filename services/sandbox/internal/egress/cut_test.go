package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

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
	} {
		t.Run(name, func(t *testing.T) {
			command, end := context.WithCancel(t.Context())
			begun := make(chan struct{}, 8)
			rule := opened(deaf.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // it listens by TCP
			if name == "a tunnel" {
				rule.TLS = Raw
			}
			w := newWorld(t, func(int, int) []Rule { return []Rule{rule} }, func(w *world, o *Options) {
				o.Ceiling = []Rule{opened(rule.Ports...)}
				w.counted = func(string) (Use, error) {
					begun <- struct{}{}
					return Use{Context: command, Ended: w.observe}, nil
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
			w.until("it is dialed", func() bool { return len(w.server.places) > 0 })
			end()
			if e := w.event(); e.Outcome != Aborted || e.Message != errCut.Message {
				t.Errorf("it is told as %+v", e)
			}
			w.until("all is given back", func() bool {
				w.server.transport.CloseIdleConnections() // an outside connection may be ready just after its request has ended
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

// Begin may refuse a request or a tunnel.
func TestBeginMayRefuseAUse(t *testing.T) {
	w := newWorld(t, cut, func(w *world, _ *Options) {
		w.counted = func(string) (Use, error) {
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
