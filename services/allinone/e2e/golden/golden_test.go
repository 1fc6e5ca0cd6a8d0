// Package golden keeps the answers of every REST path. It plays testdata/requests.txt against all services in one
// process, adds bad requests for each path, and compares with testdata/answers. After a change that is meant:
//
//	go test ./services/allinone/e2e/golden -update
package golden

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

var update = flag.Bool("update", false, "write testdata/answers anew")

func TestMain(m *testing.M) {
	// A connection's heartbeat ends by itself, at its next beat.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

func TestAnswersAreThoseThatAreKept(t *testing.T) {
	p := &player{t: t, server: serve(t), routes: routes(t), client: &http.Client{Transport: &http.Transport{}}, answers: map[string]*strings.Builder{}, saved: map[string]string{}}
	defer p.client.CloseIdleConnections()
	script := parse(t, filepath.Join("testdata", "requests.txt"))
	typical := map[string]request{}
	for _, r := range script {
		name := p.routeOf(r)
		if _, ok := typical[name]; !ok {
			typical[name] = r
		}
		p.play(r)
	}
	for _, rt := range p.routes {
		r, ok := typical[rt.name()]
		if !ok {
			t.Errorf("%s has no request in testdata/requests.txt; add a typical one, and run the test with -update", rt.name())
			continue
		}
		for _, bad := range badRequests(rt, r) {
			p.play(bad)
		}
	}
	if t.Failed() {
		return
	}
	kept := map[string]string{}
	for _, rt := range p.routes {
		kept[rt.file()] = p.answers[rt.name()].String()
	}
	compare(t, filepath.Join("testdata", "answers"), kept)
}

// compare compares files with those in dir, or writes them.
func compare(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old {
		if _, ok := want[filepath.Base(name)]; ok {
			continue
		}
		if !*update {
			t.Errorf("%s belongs to no path; run the test with -update", name)
		} else if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range want {
		file := filepath.Join(dir, name)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("no answers are kept: %v; run the test with -update, and read what it writes", err)
			continue
		}
		if diff := cmp.Diff(strings.Split(string(kept), "\n"), strings.Split(text, "\n")); diff != "" {
			t.Errorf("%s (-kept +now); if the change is meant, run the test with -update:\n%s", name, diff)
		}
	}
}

// serve runs all services until the test ends, and returns the URL of REST.
func serve(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "" {
		t.Skip("bwrap is missing; install it with: apt-get install bubblewrap")
	}
	dir, err := os.MkdirTemp("", "fairlead-golden-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := host.Defaults(dir)
	args := []string{"--config=" + filepath.Join("testdata", "config.yaml"), "--http=127.0.0.1:0", "--grpc="}
	if err := config.Load(&conf, config.Options{Name: "golden", Prefix: "FAIRLEAD_", Args: args, Environ: []string{"A=b"}}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := host.New(t.Context(), conf, telemetry.Discard(log), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(_, at string) { address <- at }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the services: %v", err)
		}
	})
	select {
	case at := <-address:
		return "http://" + at
	case err := <-ended:
		ended <- nil
		t.Fatalf("the services ended: %v", err)
		return ""
	}
}

// player plays requests and collects the answers of each route.
type player struct {
	t       *testing.T
	server  string
	routes  []route
	client  *http.Client
	answers map[string]*strings.Builder
	saved   map[string]string // by name
	keys    int               // idempotency keys so far
}

// routeOf returns the name of the route that a request has.
func (p *player) routeOf(r request) string {
	p.t.Helper()
	path, _, _ := strings.Cut(r.path, "?")
	for _, rt := range p.routes {
		if rt.method == r.method && rt.pattern.MatchString(path) {
			return rt.name()
		}
	}
	p.t.Fatalf("%s: no path of the specification is %s %s", r.title, r.method, r.path)
	return ""
}

// play makes a request and writes its answer down.
func (p *player) play(r request) {
	p.t.Helper()
	name := p.routeOf(r)
	shown := r
	for k, v := range p.saved {
		r.path, r.body = strings.ReplaceAll(r.path, "<"+k+">", v), strings.ReplaceAll(r.body, "<"+k+">", v)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	resp := p.send(ctx, r)
	defer func() { _ = resp.Body.Close() }()
	body, err := read(resp.Body, r.until)
	if err != nil {
		p.t.Fatalf("%s: %v after %s", r.title, err, body)
	}
	for k, pattern := range r.save {
		found := pattern.FindStringSubmatch(body)
		if found == nil {
			p.t.Fatalf("%s: nothing to save as %s in %s", r.title, k, body)
		}
		p.saved[k] = found[1]
	}
	out := p.answers[name]
	if out == nil {
		out = &strings.Builder{}
		p.answers[name] = out
	}
	if out.Len() > 0 {
		out.WriteString("\n")
	}
	fmt.Fprintf(out, "=== %s\n%s %s\n", r.title, shown.method, shown.path)
	if r.body != "" {
		fmt.Fprintf(out, "%s\n", strings.TrimSuffix(shown.body, "\n"))
	}
	fmt.Fprintf(out, "\n%d\n%s", resp.StatusCode, headersOf(resp.Header))
	if strings.HasSuffix(r.path, ":converse") {
		body = acceptedFirst(body)
	}
	fmt.Fprintf(out, "\n%s\n", strings.TrimSuffix(p.normal(body), "\n"))
}

// acceptedFirst puts what accepts inputs before the events, among which it comes at any time.
func acceptedFirst(body string) string {
	lines := slices.Collect(strings.Lines(body))
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Count(b, `{"result":{"accepted"`) - strings.Count(a, `{"result":{"accepted"`)
	})
	return strings.Join(lines, "")
}

func (p *player) send(ctx context.Context, r request) *http.Response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(ctx, r.method, p.server+r.path, strings.NewReader(r.body))
	if err != nil {
		p.t.Fatalf("%s: %v", r.title, err)
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	if secret := p.saved["secret"]; secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	if r.method != http.MethodGet && req.Header.Get("Idempotency-Key") == "" && !strings.HasSuffix(r.path, ":converse") {
		p.keys++
		req.Header.Set("Idempotency-Key", fmt.Sprintf("golden-%d", p.keys))
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatalf("%s: %v", r.title, err)
	}
	if !strings.Contains(resp.Header.Get("Cache-Control"), "no-store") || resp.Header.Get("X-Request-Id") == "" {
		p.t.Errorf("%s: Cache-Control %q, X-Request-Id %q", r.title, resp.Header.Get("Cache-Control"), resp.Header.Get("X-Request-Id"))
	}
	return resp
}

// read reads a body to its end, or until a piece of it matches.
func read(from io.Reader, until *regexp.Regexp) (string, error) {
	if until == nil {
		all, err := io.ReadAll(from)
		return string(all), err
	}
	var all strings.Builder
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		all.Write(buf[:n])
		if end := until.FindStringIndex(all.String()); end != nil {
			rest := all.String()[end[1]:]
			if line := strings.IndexByte(rest, '\n'); line >= 0 {
				return all.String()[:end[1]+line+1], nil
			}
		}
		if err != nil {
			return all.String(), fmt.Errorf("%q did not come: %w", until, err)
		}
	}
}

// headersOf returns the headers that are kept.
func headersOf(h http.Header) string {
	var b strings.Builder
	for _, name := range []string{"Content-Type", "Content-Disposition", "Allow", "Retry-After", "WWW-Authenticate", "X-Accel-Buffering"} {
		if v := h.Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	return b.String()
}

// badRequests returns requests of a route that are wrong, made from a good one.
func badRequests(rt route, good request) []request {
	path, _, _ := strings.Cut(good.path, "?")
	change := func(title string, f func(*request)) request {
		r := good
		r.title, r.until, r.save = title, nil, nil
		f(&r)
		return r
	}
	all := []request{change("an unknown query parameter", func(r *request) { r.path = path + "?shape=red" })}
	if strings.Contains(rt.path, "{") {
		all = append(all,
			change("a name of nothing", func(r *request) { r.path = strings.Replace(good.path, path, rt.with("nothing"), 1) }),
			change("a malformed name", func(r *request) { r.path = strings.Replace(good.path, path, rt.with("-%20-"), 1) }))
	}
	if rt.takes("application/json") {
		all = append(all,
			change("half a body", func(r *request) { r.body = `{"shape":` }),
			change("an unknown field", func(r *request) { r.body = `{"shape":"red"}` }),
			change("a body of another type", func(r *request) { r.body, r.header = "a=b", map[string]string{"Content-Type": "text/plain"} }))
	}
	if slices.Contains(rt.parameters, "page_size") {
		all = append(all,
			change("a page of a negative size", func(r *request) { r.path = path + "?page_size=-1" }),
			change("a page token of nothing", func(r *request) { r.path = path + "?page_token=x" }))
	}
	return all
}
