package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A page that points its own name at a loopback listener is, to its browser, of the same site as Fairlead.
func TestAPageThatTookALoopbackAddressReachesNothing(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		listeners := map[string][]string{s.http: {
			"GET /v1/sessions", "GET /v1/" + session + "/events:stream", "POST /v1/" + session + "/turns", "POST /v1/" + session + "/turns:stream",
			"POST /v1/sessions:converse", "GET /v1/" + session + ":export", "GET /openapi.json", "OPTIONS /v1/sessions", "GET /healthz", "GET /readyz", "GET /metrics",
		}}
		if o.four {
			for _, service := range []string{"session", "tools", "sandbox"} {
				listeners[s.options.addrs[service+"-ops"]] = []string{"GET /healthz", "GET /readyz", "GET /metrics"}
			}
		}
		for address, requests := range listeners {
			for _, request := range requests {
				method, path, _ := strings.Cut(request, " ")
				if code, body := s.fromPage(t, address, method, path, "evil.example:8080"); code != http.StatusMisdirectedRequest || !strings.Contains(body, "allowed-hosts") {
					t.Errorf("%s of %s by a name of the page's own: %d %s", request, address, code, body)
				}
				if code, body := s.fromPage(t, address, method, path, address); code != http.StatusForbidden || !strings.Contains(body, "allowed-hosts") {
					t.Errorf("%s of %s from a page of another origin: %d %s", request, address, code, body)
				}
			}
		}
		last(t, s.turn(t, session, "still there?"), "COMPLETE")
	})
}

// fromPage makes a request as the browser of a page at http://evil.example:8080 does.
func (s *system) fromPage(t *testing.T, address, method, path, host string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	body := ""
	if method == http.MethodPost {
		body = `{"text":"run"}`
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Origin", "http://evil.example:8080")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
