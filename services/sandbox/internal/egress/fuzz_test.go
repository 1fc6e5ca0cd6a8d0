package egress

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// fuzzed serves connections in memory.
func fuzzed(t testing.TB, observe func(Event)) (*handoff, *Server) {
	t.Helper()
	p, err := New(Options{
		Ceiling: []Rule{{Host: "*.example.com"}}, Log: slog.New(slog.DiscardHandler),
		Limits:  Limits{Connections: 16, Idle: time.Minute, Total: time.Minute, Bytes: 1 << 20},
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{netip.IPv6Loopback()}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := p.Policy([]Rule{{Host: "api.example.com", Paths: []string{"/pub/**"}, Methods: []string{"GET", "POST"}}, {Host: "tls.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	l := newHandoff(&net.TCPAddr{})
	s := p.Serve(l, policy, Client{Begin: func(string) (Use, error) { return Use{Ended: observe}, nil }})
	return l, s
}

// FuzzRequests sends bytes to a proxy whose names are all at loopback, which no rule
// opens: whatever the bytes are, nothing may be dialed, and what the rules let as
// far as dialing is what they say.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		"GET http://api.example.com/pub/x HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT tls.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST http://api.example.com/pub/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.org/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://api.example.com:80@evil.org/pub/../x HTTP/1.0\r\n\r\n", "CONNECT [::ffff:7f00:1]:443 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"GET http://0x7f.1/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "TRACE http://tls.example.com/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic YTpi\r\n\r\n",
		"GET http://ａpi。example.com/pub/%2e%2e HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []Event
		events := make(chan Event, 1024)
		l, s := fuzzed(t, func(e Event) {
			select {
			case events <- e:
			default:
			}
		})
		in, out := net.Pipe()
		if !l.pass(out) {
			t.Fatal("the server does not accept")
		}
		go func() { _, _ = in.Write(data); _, _ = in.Write([]byte("\r\n\r\n")) }()
		_ = in.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		answer, _ := io.ReadAll(in)
		_ = in.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		close(events)
		for e := range events {
			all = append(all, e)
		}
		if bytes.Contains(answer, []byte(" 200 ")) && bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
			t.Errorf("something was answered: %q", answer)
		}
		for _, e := range all {
			checkFuzzed(t, e)
		}
	})
}

func checkFuzzed(t *testing.T, e Event) {
	t.Helper()
	if e.Outcome == Done || e.Address.IsValid() {
		t.Errorf("something was dialed: %+v", e)
	}
	if e.Rule != "" && e.Host != "api.example.com" && e.Host != "tls.example.com" {
		t.Errorf("rule %q let %q through", e.Rule, e.Host)
	}
	if e.Rule == "api.example.com" && e.Method != http.MethodGet && e.Method != http.MethodPost {
		t.Errorf("rule %q let %s through", e.Rule, e.Method)
	}
	if e.Rule != "" && e.Port != 80 && e.Port != 443 {
		t.Errorf("rule %q let port %d through", e.Rule, e.Port)
	}
}

// FuzzDecision compares the decision on a path with what a plain server would make
// of it: nothing outside /pub/ may be let through.
func FuzzDecision(f *testing.F) {
	p, err := New(Options{Ceiling: []Rule{{Host: "*"}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	policy, err := p.Policy([]Rule{{Host: "*.example.com", Paths: []string{"/pub/**"}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"http://a.example.com/pub/x", "http://a.example.com/pub/../x", "http://a.example.com/pub/%2e%2e/x", "http://a.example.com./pub/..;/x", "http://[::1]/pub/", "http://a.example.com:081/pub"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, uri, nil)
		if err != nil {
			return
		}
		to, err := address(r)
		if err != nil {
			return
		}
		if again, err := parseAuthority(to.authority(), 0); err != nil || again != to {
			t.Fatalf("%q goes to %s, which is %s (%v)", uri, to.authority(), again.authority(), err)
		}
		if _, _, err := policy.request(to, r.Method, r.URL.EscapedPath(), r.URL.Path, false); err != nil {
			return
		}
		segments := strings.Split(strings.ReplaceAll(r.URL.Path, "\\", "/"), "/")
		if !strings.HasSuffix(to.name, ".example.com") || to.port != 80 && to.port != 443 || len(segments) < 2 || segments[1] != "pub" || slices.Contains(segments, "..") {
			t.Errorf("%q was let through, to %s", uri, to.authority())
		}
	})
}
