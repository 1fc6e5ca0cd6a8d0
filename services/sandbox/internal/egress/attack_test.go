package egress

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Evil.org is a host of the same server that no rule names: what comes to it
// got past the rules.
func TestHostileRequestsGoNowhere(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule {
		return []Rule{
			opened(a, b), {Name: "api", Host: "api.example.com", Ports: []int{a, b}},
			{Name: "some", Host: "some.example.com", Ports: []int{a}, Methods: []string{"GET"}, Paths: []string{"/pub/**"}},
		}
	})
	p := port(w.web)
	for _, x := range []struct {
		name, request string
		status        int
	}{
		{"a request for no host", "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n", 400},
		{"a request for the options of anything", "OPTIONS * HTTP/1.1\r\nHost: api.example.com\r\n\r\n", 400},
		{"another host in the address than in Host", "GET http://evil.org:P/ HTTP/1.1\r\nHost: api.example.com:P\r\n\r\n", 403},
		{"a user in the address", "GET http://api.example.com:P@evil.org:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a password in the address", "GET http://u:p@api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"an allowed host as the path", "GET http://evil.org:P/api.example.com HTTP/1.1\r\nHost: api.example.com\r\n\r\n", 403},
		{"a backslash after the host", "GET http://evil.org\\.api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a fragment before the host's end", "GET http://evil.org#.api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a question mark before the host's end", "GET http://evil.org?.api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"an encoded dot in the host", "GET http://api%2eexample.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"an encoded zero in the host", "GET http://evil.org%00.api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"https in the address", "GET https://api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"another scheme", "GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"an address without slashes", "GET http:api.example.com HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"loopback by address, which only its range opens", "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"loopback in octal", "GET http://0177.0.0.1:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"loopback in hexadecimal", "GET http://0x7f000001:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"loopback as a number", "GET http://2130706433:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"loopback in two parts", "GET http://127.1:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"loopback in IPv6", "GET http://[::1]:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"metadata", "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", 403},
		{"metadata in IPv6", "GET http://[::ffff:a9fe:a9fe]/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"an interface of the machine", "GET http://[fe80::1%25eth0]:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"TRACE, which would show credentials", "TRACE http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"TRACE in small letters", "trace http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"TRACK, which is TRACE to some", "TRACK http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a method that no rule allows", "POST http://some.example.com:P/pub/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 403},
		{"a method in small letters", "get http://some.example.com:P/pub/x HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a method to override the method", "DELETE http://some.example.com:P/pub/x HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: GET\r\n\r\n", 403},
		{"a path that no rule allows", "GET http://some.example.com:P/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with dots", "GET http://some.example.com:P/pub/../secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with encoded dots", "GET http://some.example.com:P/pub/%2e%2e/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with dots encoded twice", "GET http://some.example.com:P/pub/%252e%252e/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with an encoded slash", "GET http://some.example.com:P/pub/..%2fsecret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with dots and an encoded blank", "GET http://some.example.com:P/pub/..%20/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with dots of two bytes", "GET http://some.example.com:P/pub/%c0%ae%c0%ae/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with dots and parameters", "GET http://some.example.com:P/pub/..;x/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with dots of full width", "GET http://some.example.com:P/pub/%ef%bc%8e%ef%bc%8e/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with two dots in one character", "GET http://some.example.com:P/pub/%e2%80%a5/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with a slash of full width", "GET http://some.example.com:P/pub/x%ef%bc%8fy HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a path with a per cent sign of full width", "GET http://some.example.com:P/pub/%ef%bc%852e%ef%bc%852e/secret HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a tunnel past methods and paths", "CONNECT some.example.com:P HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a tunnel to another port", "CONNECT api.example.com:22 HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"a tunnel to another host", "CONNECT evil.org:P HTTP/1.1\r\nHost: api.example.com:P\r\n\r\n", 403},
		{"a tunnel without a port", "CONNECT api.example.com HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a tunnel with a path", "CONNECT api.example.com:P/x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a tunnel with a user", "CONNECT u@evil.org:P HTTP/1.1\r\nHost: api.example.com\r\n\r\n", 400},
		{"a tunnel with a body", "CONNECT api.example.com:P HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 400},
		{"a tunnel by a path", "CONNECT / HTTP/1.1\r\nHost: api.example.com:P\r\n\r\n", 400},
		{"two hosts", "GET http://evil.org:P/ HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.org\r\n\r\n", 400},
		{"two lengths", "POST http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhello", 400},
		{"a negative length", "POST http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
		{"an unknown coding", "POST http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		{"a coding with a blank in its name", "POST http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
		{"a line that is no header", "GET http://api.example.com:P/ HTTP/1.1\r\nHost: x\r\nX: a\r\n\x0b b\r\n\r\n", 400},
		{"HTTP/2 by knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
	} {
		t.Run(x.name, func(t *testing.T) {
			resp, c, _ := w.raw(strings.ReplaceAll(x.request, ":P", fmt.Sprintf(":%d", p)))
			if resp.StatusCode != x.status {
				body, _ := io.ReadAll(resp.Body)
				t.Errorf("got %d %q, want %d", resp.StatusCode, body, x.status)
			}
			_ = c.Close()
			if seen := w.seen(); len(seen) != 0 {
				t.Errorf("%s %s came out", seen[0].Method, seen[0].URL)
			}
		})
	}
	// Others are served as before.
	if status, body := w.ask(w.client(w.roots), http.MethodGet, fmt.Sprintf("http://api.example.com:%d/x", p)); status != 200 {
		t.Errorf("an honest request afterwards: %d %q", status, body)
	}
}

func TestWhatIsSmuggledIsARequestOfItsOwn(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule {
		return []Rule{opened(a), {Name: "some", Host: "some.example.com", Ports: []int{a}, Paths: []string{"/pub/*"}}}
	})
	p := port(w.web)
	hidden := fmt.Sprintf("GET http://some.example.com:%d/secret HTTP/1.1\r\nHost: x\r\n\r\n", p)
	for _, x := range []struct{ name, head, body string }{
		{"a length and a coding", fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", 5+len(hidden)), "0\r\n\r\n" + hidden},
		{"a coding and a length", fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d\r\n", 5+len(hidden)), "0\r\n\r\n" + hidden},
		{"a pipeline", "Content-Length: 0\r\n", hidden},
		{"chunks with extensions", "Transfer-Encoding: chunked\r\n", "1;x=y\r\na\r\n0\r\n\r\n" + hidden},
		{"a trailer", "Transfer-Encoding: chunked\r\nTrailer: X\r\n", "0\r\nX: y\r\n\r\n" + hidden},
	} {
		t.Run(x.name, func(t *testing.T) {
			before := len(w.seen())
			resp, c, b := w.raw(fmt.Sprintf("POST http://some.example.com:%d/pub/x HTTP/1.1\r\nHost: x\r\n%s\r\n%s", p, x.head, x.body))
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != http.StatusOK {
				t.Errorf("the first answer is %d", resp.StatusCode)
			}
			if second, err := http.ReadResponse(b, nil); err == nil && second.StatusCode != http.StatusForbidden {
				t.Errorf("the second answer is %d", second.StatusCode)
			}
			_ = c.Close()
			for _, r := range w.seen()[before:] {
				if r.URL.Path != "/pub/x" || len(r.Trailer) > 0 {
					t.Errorf("%s %s with trailers %v came out", r.Method, r.URL, r.Trailer)
				}
			}
		})
	}
}

func TestTunnelsHoldTheirNameInside(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("api.example.com", a, b) })
	connect := fmt.Sprintf("CONNECT api.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\n", port(w.secure))
	for _, x := range []struct {
		name, inside string
	}{
		{"plain HTTP inside", "GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n"},
		{"SSH inside", "SSH-2.0-x\r\n"},
		{"TLS for another host", hello(t, "evil.org")},
		{"TLS for a host that ends alike", hello(t, "api.example.com.evil.org")},
		{"TLS for no host", hello(t, "")},
	} {
		t.Run(x.name, func(t *testing.T) {
			resp, c, b := w.raw(connect + x.inside)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("CONNECT: %d", resp.StatusCode)
			}
			if n, _ := io.Copy(io.Discard, b); n != 0 {
				t.Errorf("%d bytes came back", n)
			}
			_ = c.Close()
			if e := w.event(); e.Outcome != Denied || e.Message == "" {
				t.Errorf("event %+v", e)
			}
		})
	}
	if len(w.seen()) != 0 {
		t.Error("something came out")
	}
}

func TestAddressesAreCheckedWhereTheyAreDialled(t *testing.T) {
	public := netip.MustParseAddr("192.0.2.0") // documentation's: never dialed, because special as well
	for _, x := range []struct {
		name  string
		addrs []string
	}{
		{"private", []string{"10.0.0.1"}}, {"link-local, with metadata", []string{"169.254.169.254"}}, {"IPv4 in IPv6", []string{"::ffff:10.0.0.1"}},
		{"behind a NAT64", []string{"64:ff9b::a00:1"}}, {"behind 6to4", []string{"2002:a00:1::"}}, {"unique local", []string{"fd00::1"}}, {"any", []string{"0.0.0.0", "::"}},
		{"carrier-grade NAT", []string{"100.64.0.1"}}, {"multicast", []string{"224.0.0.1"}}, {"documentation", []string{public.String()}},
		{"loopback that no range names", []string{"127.0.0.1"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t, func(a, b int) []Rule { return []Rule{{Host: "rebind.example.com", Ports: []int{a, b}}} })
			for _, a := range x.addrs {
				w.names["rebind.example.com"] = append(w.names["rebind.example.com"], netip.MustParseAddr(a))
			}
			status, body := w.ask(w.client(w.roots), http.MethodGet, fmt.Sprintf("http://rebind.example.com:%d/", port(w.web)))
			if e := w.event(); status != 403 || !strings.Contains(body, "special address") || e.Outcome != RefusedAddress || e.Address.IsValid() || e.Received != 0 {
				t.Errorf("request: %d %q, event %+v", status, body, e)
			}
			resp, _, _ := w.raw(fmt.Sprintf("CONNECT rebind.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\n", port(w.secure)))
			if e := w.event(); resp.StatusCode != http.StatusForbidden || e.Outcome != RefusedAddress || e.Received != 0 {
				t.Errorf("tunnel: %d, event %+v", resp.StatusCode, e)
			}
		})
	}
}

func TestANameThatChangesItsAddressIsCheckedAgain(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("rebind.example.com", a, b) })
	c := w.client(w.roots)
	c.Transport.(*http.Transport).DisableKeepAlives = true
	url := fmt.Sprintf("http://rebind.example.com:%d/", port(w.web))
	if status, body := w.ask(c, http.MethodGet, url, "Connection", "close"); status != 200 {
		t.Fatalf("first: %d %q", status, body)
	}
	w.server.transport.CloseIdleConnections()
	w.mu.Lock()
	w.names["rebind.example.com"] = []netip.Addr{netip.MustParseAddr("169.254.169.254")}
	w.mu.Unlock()
	if status, body := w.ask(c, http.MethodGet, url); status != 403 {
		t.Errorf("second: %d %q", status, body)
	}
}

func TestRedirectsFindTheSameDoor(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("api.example.com", a, b) })
	w.other = func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, r.URL.Query().Get("to"), http.StatusFound)
	}
	for _, to := range []string{"http://169.254.169.254/latest/", "http://127.0.0.1:1/", fmt.Sprintf("http://evil.org:%d/", port(w.web)), "http://[::1]/"} {
		status, body := w.ask(w.client(w.roots), http.MethodGet, fmt.Sprintf("http://api.example.com:%d/?to=%s", port(w.web), to))
		if status != 403 {
			t.Errorf("to %s: %d %q", to, status, body)
		}
	}
	for _, r := range w.seen() {
		if !strings.HasPrefix(r.Host, "api.example.com") {
			t.Errorf("a request for %s came out", r.Host)
		}
	}
}

func TestProtocolsDoNotChangeAfterTheCheck(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("api.example.com", a, b) })
	for _, proto := range []string{"h2c", "websocket"} {
		w.other = func(rw http.ResponseWriter, r *http.Request) {
			if slices.Contains(r.Header["Upgrade"], proto) || r.Header.Get("Http2-Settings") != "" {
				t.Errorf("an upgrade to %s came out", proto)
			}
			rw.Header().Set("Connection", "Upgrade")
			rw.Header().Set("Upgrade", proto)
			rw.WriteHeader(http.StatusSwitchingProtocols)
		}
		resp, c, _ := w.raw(fmt.Sprintf("GET http://api.example.com:%d/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: %s\r\nHTTP2-Settings: AA\r\n\r\n", port(w.web), proto))
		if resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: %d, want 502", proto, resp.StatusCode)
		}
		_ = c.Close()
	}
}

// Some frameworks take the method or the path from a header instead: a rule that looks at
// them would look at the wrong ones.
func TestHeadersThatOverrideMethodsAndPathsDoNotLeave(t *testing.T) {
	overriding := []string{
		"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Original-Method",
		"X-Forwarded-Method", "X-Forwarded-Uri", "X-Original-Uri", "X-Forwarded-Prefix", "Script-Name", "Path-Info",
	}
	var header []string
	for _, name := range overriding {
		header = append(header, name, "DELETE")
	}
	for _, x := range []struct {
		name    string
		rules   func(a, b int) []Rule
		ceiling []Rule
		leaves  bool
	}{
		{"with a rule for methods", func(a, b int) []Rule {
			return []Rule{{Host: "api.example.com", Ports: []int{a}, Methods: []string{"POST"}}, opened(a)}
		}, nil, false},
		{"with a rule for paths", func(a, b int) []Rule {
			return []Rule{{Host: "api.example.com", Ports: []int{a}, Paths: []string{"/x"}}, opened(a)}
		}, nil, false},
		{"with an operator's rule for methods", func(a, b int) []Rule { return named("api.example.com", a, b) }, []Rule{{Host: "api.example.com", Methods: []string{"POST"}}}, false},
		{"with rules that do not look", func(a, b int) []Rule { return named("api.example.com", a, b) }, nil, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t, x.rules, func(w *world, o *Options) {
				if x.ceiling == nil {
					return
				}
				o.Ceiling = []Rule{opened(port(w.web), port(w.secure))}
				for _, r := range x.ceiling {
					r.Ports = []int{port(w.web), port(w.secure)}
					o.Ceiling = append(o.Ceiling, r)
				}
			})
			if status, body := w.ask(w.client(w.roots), http.MethodPost, fmt.Sprintf("http://api.example.com:%d/x", port(w.web)), header...); status != 200 {
				t.Fatalf("got %d %s", status, body)
			}
			for _, name := range overriding {
				if got := w.seen()[0].Header.Get(name); (got != "") != x.leaves {
					t.Errorf("%s arrives as %q", name, got)
				}
			}
		})
	}
}
