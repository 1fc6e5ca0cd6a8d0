package doors

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// visit calls the paths that are open to every caller, and some that do not exist.
func (w *world) visit(t *testing.T) {
	t.Helper()
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/healthz", 200},
		{http.MethodGet, "/readyz", 200},
		{http.MethodGet, "/metrics", 401}, // not for every caller
		{http.MethodGet, "/openapi.json", 200},
		{http.MethodGet, "/.well-known/oauth-protected-resource/mcp", 200},
		{http.MethodGet, "/.well-known/oauth-protected-resource/v1", 401},
		{http.MethodPost, "/mcp", 401},
		{http.MethodGet, "/mcp/sessions/hers", 401},
		{http.MethodDelete, "/mcp/agents/asker", 401},
		{http.MethodOptions, "/v1/sessions/hers", 204},
		{http.MethodHead, "/v1/sessions/hers", 401},
		{http.MethodGet, "/v1/sessions/hers/", 401},
		{http.MethodGet, "/v1//sessions/hers", 401},
		{http.MethodGet, "/v1/sessions/hers/nothing", 401},
		{http.MethodGet, "/V1/sessions/hers", 401},
		{http.MethodTrace, "/v1/sessions/hers", 401},
		{http.MethodGet, "/debug/pprof/", 401},
		{http.MethodGet, "/", 401},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, w.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s %s without a credential: %s %.300s %v", c.method, c.path, resp.Status, text, err)
		}
		w.quiet(t, c.method+" "+c.path, string(text))
	}
}

// quiet checks that a text has no word of acme, and no credential.
func (w *world) quiet(t *testing.T, what, text string) {
	t.Helper()
	for _, words := range [][]string{w.private, w.shared, w.secrets} {
		for _, word := range words {
			if strings.Contains(text, word) {
				t.Errorf("%s: the answer has %q: %.300s", what, word, text)
			}
		}
	}
}

// repeat makes ann's requests as others, with her idempotency keys and her ids: they get something of their own.
func (w *world) repeat(t *testing.T) {
	t.Helper()
	create := func(who, path string) (status int, text string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(`{"agent":"agents/writer"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = w.of(who).headers()
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "once")
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	status, hers := create("ann", "/v1/sessions?session_id=once")
	if status != http.StatusOK || !strings.Contains(hers, `"name":"sessions/once"`) {
		t.Fatalf("ann: %d %s", status, hers)
	}
	if again, text := create("ann", "/v1/sessions?session_id=once"); again != http.StatusOK || text != hers {
		t.Errorf("ann, again: %d %s", again, text)
	}
	if status, text := create("bob", "/v1/sessions?session_id=once"); status == http.StatusOK || strings.Contains(text, "createTime") {
		t.Errorf("bob repeats ann's request, and gets %d %s", status, text)
	}
	if status, text := create("bob", "/v1/sessions"); status == http.StatusOK && strings.Contains(text, "sessions/once") {
		t.Errorf("bob uses ann's idempotency key, and gets %d %s", status, text)
	}
	if status, text := create("rival", "/v1/sessions?session_id=once"); status != http.StatusOK || text == hers {
		t.Errorf("a session of rival with the same id: %d %s", status, text)
	}
	ben := w.send(t.Context(), t, w.keys["rival"], http.MethodDelete, "/v1/sessions/once", "")
	_ = ben.Body.Close()
	mine := w.send(t.Context(), t, w.keys["ann"], http.MethodGet, "/v1/sessions/once", "")
	defer func() { _ = mine.Body.Close() }()
	if text, _ := io.ReadAll(mine.Body); ben.StatusCode != http.StatusOK || mine.StatusCode != http.StatusOK {
		t.Errorf("rival deletes its session: %s; then ann's is %s %s", ben.Status, mine.Status, text)
	}
}
