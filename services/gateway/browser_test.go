package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
)

// page calls a gateway on another origin, and tells its own server what it has seen.
const page = `<!doctype html><script type="module">
const api = %q, all = {"Idempotency-Key": "k1", "Last-Event-ID": "1", "Authorization": "Bearer fl_ann", "x-api-key": "fl_ann",
  "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
const seen = {};
async function call(name, path, init) {
  try {
    const r = await fetch(api + path, init);
    const body = await r.text();
    seen[name] = r.status + " " + ["Idempotency-Key", "X-Request-Id", "Allow"].filter(h => r.headers.get(h)).join(" ");
    if (name == "stream") seen.events = body.split("\n\n").filter(f => f.startsWith("id:")).length + "";
  } catch (e) { seen[name] = "blocked"; }
}
await call("post", "/v1/sessions", {method: "POST", body: "{}", headers: {...all, "Content-Type": "application/json"}});
await call("put", "/v1/users/default/variables/A", {method: "PUT", body: '{"value":"x"}', headers: {...all, "Content-Type": "application/json"}});
await call("delete", "/v1/sessions/s1", {method: "DELETE", headers: all});
await call("stream", "/v1/sessions/s1/events", {headers: {...all, Accept: "text/event-stream"}});
await call("missing", "/v1/nothing", {method: "PATCH", headers: all});
await call("wrong method", "/v1/tools", {method: "PUT", headers: all});
await call("other header", "/v1/tools", {headers: {"x-other": "1"}});
await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
</script>`

// browser returns the path of Chromium.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs Chromium (the Debian package chromium)")
	return ""
}

func TestABrowserCallsFromAnAllowedOrigin(t *testing.T) {
	program := browser(t)
	seen := make(chan map[string]string, 1)
	var api atomic.Value
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/seen" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, page, api.Load())
			return
		}
		got := map[string]string{}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("the page's report: %v", err)
		}
		select {
		case seen <- got:
		default:
		}
	}))
	defer site.Close()
	// Another port is another origin.
	conf := gateway.DefaultConfig()
	conf.AllowedOrigins = []string{site.URL}
	allowed, other := serveAs(t, &fake{events: replay(3)}, conf, knowing(t, auth.Config{Mode: auth.Required}, &oneKey{})), serve(t, &fake{})

	api.Store(allowed.URL)
	want := map[string]string{
		"post": "200 Idempotency-Key X-Request-Id", "put": "501 X-Request-Id", "delete": "200 Idempotency-Key X-Request-Id",
		"stream": "200 X-Request-Id", "events": "2", "missing": "404 X-Request-Id", "wrong method": "blocked", "other header": "blocked",
	}
	if diff := cmp.Diff(want, visit(t, program, site.URL, seen)); diff != "" {
		t.Errorf("an allowed page sees (-want +got):\n%s", diff)
	}
	api.Store(other.URL)
	for name, got := range visit(t, program, site.URL, seen) {
		if got != "blocked" {
			t.Errorf("a page that is not allowed sees %s: %s", name, got)
		}
	}
}

// visit opens a page in Chromium and returns its report.
func visit(t *testing.T, program, url string, seen <-chan map[string]string) map[string]string {
	t.Helper()
	home := t.TempDir()
	var log strings.Builder
	cmd := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+home, url)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Stderr, cmd.Stdout = &log, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	select {
	case got := <-seen:
		return got
	case <-time.After(time.Minute):
		t.Fatalf("the page reported nothing:\n%s", &log)
		return nil
	}
}
