package rpc_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// asPage makes the request of a page: Host is the name that the page calls this listener by.
func asPage(t *testing.T, address, path, host string, origins ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Header["Origin"] = origins
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if cc, sniff := resp.Header.Get("Cache-Control"), resp.Header.Get("X-Content-Type-Options"); cc != "no-store" || sniff != "nosniff" {
		t.Errorf("%s: Cache-Control %q, X-Content-Type-Options %q", path, cc, sniff)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, ""
	}
	var problem struct{ Details []struct{ Reason string } }
	if err := json.Unmarshal(body, &problem); err != nil || len(problem.Details) != 1 || !strings.Contains(string(body), "allowed-hosts") {
		t.Errorf("the refusal is %s", body)
		return resp.StatusCode, ""
	}
	return resp.StatusCode, problem.Details[0].Reason
}

func TestListenersAnswerToTheirOwnNamesOnly(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	for shape, ops := range map[string]string{"ops on a listener of its own": "127.0.0.1:0", "ops on the http listener": ""} {
		c := everywhere()
		c.Ops, c.AllowedHosts = ops, []string{"api.example", "*.wild.example", "192.0.2.7"}
		r := serve(t, c, web{&part{name: "a", events: &diary{}, handler: page}})
		paths := map[string]string{"/any": "http", "/v1/sessions/s/events:stream": "http", "/healthz": "ops", "/readyz": "ops", "/metrics": "ops"}
		for path, face := range paths {
			if ops == "" {
				face = "http"
			}
			address := r.at[face]
			_, port, _ := net.SplitHostPort(address)
			for _, host := range []string{
				address, "127.0.0.1", "127.0.0.1:1", "127.1.2.3", "localhost", "localhost:" + port, "LOCALHOST.", "[::1]", "[::1]:" + port,
				"[::ffff:127.0.0.1]", "api.example", "API.example:8080", "a.wild.example", "a.b.wild.example:1", "192.0.2.7:80", "10.0.0.1:" + port, "203.0.113.9", "[2001:db8::1]:1",
			} {
				if code, _ := asPage(t, address, path, host); code != http.StatusOK {
					t.Errorf("%s, %s: the host %q is refused with %d", shape, path, host, code)
				}
			}
			for _, host := range []string{
				"evil.example:" + port, "evil.example", "evil.example.", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example",
				"wild.example", "wild.example.evil", "evilwild.example", "x.api.example", "2130706433", "0x7f.1", "127.1", "evil.10.0.0.1",
			} {
				if code, reason := asPage(t, address, path, host); code != http.StatusMisdirectedRequest || reason != "HOST_NOT_ALLOWED" {
					t.Errorf("%s, %s: the host %q gets %d %s", shape, path, host, code, reason)
				}
			}
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnOriginAgreesWithTheListener(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	c := everywhere()
	c.AllowedHosts = []string{"api.example"}
	r := serve(t, c, web{&part{name: "a", events: &diary{}, handler: page}})
	for _, x := range []struct {
		face, path string
		allowed    bool
		origins    []string
	}{
		{"http", "/any", true, nil},
		{"http", "/any", true, []string{"http://" + r.at["http"]}},
		{"http", "/any", true, []string{"http://localhost:3000"}},
		{"http", "/any", true, []string{"https://api.example"}},
		{"http", "/any", true, []string{"https://app.example"}}, // an origin that the component allows
		{"http", "/any", false, []string{"http://app.example"}},
		{"http", "/any", false, []string{"http://evil.example:8080"}},
		{"http", "/any", false, []string{"https://app.example.evil.example"}},
		{"http", "/any", false, []string{"null"}},
		{"http", "/any", false, []string{"file://"}},
		{"http", "/any", false, []string{"ftp://localhost"}},
		{"http", "/any", false, []string{"http://localhost", "http://evil.example"}},
		{"ops", "/metrics", true, []string{"http://" + r.at["ops"]}},
		{"ops", "/metrics", false, []string{"http://evil.example"}},
		{"ops", "/healthz", false, []string{"https://app.example"}},
	} {
		code, reason := asPage(t, r.at[x.face], x.path, r.at[x.face], x.origins...)
		if x.allowed != (code == http.StatusOK) || (!x.allowed && (code != http.StatusForbidden || reason != "ORIGIN_NOT_ALLOWED")) {
			t.Errorf("%s%s from %q: %d %s", x.face, x.path, x.origins, code, reason)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// Load balancers check with HTTP/1.0, which has no Host. A browser always sends one.
func TestARequestWithoutAHostIsAnswered(t *testing.T) {
	r := serve(t, everywhere(), web{&part{name: "a", events: &diary{}, handler: http.NotFoundHandler()}})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.at["ops"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("%q, %v", line, err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// Browsers speak HTTP/2 inside TLS alone. What they can send to a gRPC listener must not reach an RPC, whatever the name.
func TestABrowserCannotReachAGRPCListener(t *testing.T) {
	p := &part{name: "a", events: &diary{}, handler: http.NotFoundHandler()}
	r := serve(t, everywhere(), web{p})
	for _, face := range []string{"public", "peer"} {
		for _, header := range []string{"Content-Type: application/grpc-web+proto", "Content-Type: application/grpc", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__"} {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.at[face])
			if err != nil {
				t.Fatal(err)
			}
			request := "POST /fairlead.test.v1.Notes/Take HTTP/1.1\r\nHost: evil.example\r\n" + header + "\r\nContent-Length: 5\r\n\r\n\x00\x00\x00\x00\x00"
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(conn) // the server ends the connection
			if strings.HasPrefix(string(answer), "HTTP/1") {
				t.Errorf("%s with %s: %q", face, header, answer)
			}
			_ = conn.Close()
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestAllowedHostsAreChecked(t *testing.T) {
	for host, good := range map[string]bool{
		"api.example.com": true, "*.example.com": true, "*": true, "node1": true, "192.0.2.1": true, "2001:db8::1": true, "_dash.example": true,
		"": false, "https://api.example.com": false, "api.example.com:8080": false, "*example.com": false, "a.*.com": false, "*.": false, ".example.com": false, "a b": false,
	} {
		c := rpc.DefaultConfig()
		c.AllowedHosts = []string{host}
		if err := c.Validate(); (err == nil) != good {
			t.Errorf("%q: %v", host, err)
		}
	}
}
