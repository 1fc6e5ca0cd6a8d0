package egress

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func named(host string, plain, secure int) []Rule {
	return []Rule{opened(plain, secure), {Name: "api", Host: host, Ports: []int{plain, secure}}}
}

func TestRequestsGoWhereARuleAllows(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("*.example.com", a, b) })
	c := w.client(w.roots)
	for _, x := range []struct {
		name, url, body string
		status          int
		outcome         Outcome
	}{
		{"a name below the wildcard is answered", fmt.Sprintf("http://api.example.com:%d/x?token=1", port(w.web)), "GET api.example.com", 200, Done},
		{"case and a trailing dot change nothing", fmt.Sprintf("http://API.Example.com.:%d/x", port(w.web)), "GET api.example.com", 200, Done},
		{"the bare name is not below the wildcard", fmt.Sprintf("http://example.com:%d/x", port(w.web)), "no rule", 403, Denied},
		{"a name that ends alike is another one", fmt.Sprintf("http://evilexample.com:%d/x", port(w.web)), "no rule", 403, Denied},
		{"a name that begins alike is another one", fmt.Sprintf("http://api.example.com.evil.org:%d/x", port(w.web)), "no rule", 403, Denied},
		{"another port is refused", "http://api.example.com:1/x", "port 1", 403, Denied},
	} {
		t.Run(x.name, func(t *testing.T) {
			status, body := w.ask(c, http.MethodGet, x.url)
			if status != x.status || !strings.Contains(body, x.body) {
				t.Errorf("got %d %q, want %d %q", status, body, x.status, x.body)
			}
			e := w.event()
			if e.Outcome != x.outcome || e.Exec != "call-1" || strings.Contains(fmt.Sprint(e), "token") {
				t.Errorf("event %+v, want outcome %s, of call-1, without the query", e, x.outcome)
			}
			if want := int64(len(body)); x.outcome == Done && e.Received != want || x.outcome != Done && e.Received != 0 {
				t.Errorf("%d bytes received, of %d", e.Received, want)
			}
		})
	}
}

func TestTLSPassesToTheNameThatWasAskedFor(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("api.example.com", a, b) })
	c := w.client(w.roots) // trusts the server itself, so no proxy stood between
	status, body := w.ask(c, http.MethodGet, fmt.Sprintf("https://api.example.com:%d/x", port(w.secure)))
	if status != 200 || !strings.HasPrefix(body, "GET api.example.com") {
		t.Fatalf("got %d %q", status, body)
	}
	c.CloseIdleConnections()
	e := w.event()
	if e.Kind != KindTunnel || e.Outcome != Done || e.Host != "api.example.com" || e.Sent == 0 || e.Received == 0 || e.Rule != "api" || !e.Address.IsLoopback() {
		t.Errorf("event %+v", e)
	}
}
