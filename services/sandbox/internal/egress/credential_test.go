package egress

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const secret = "s3cret-t0ken"

func withSecrets(t *testing.T) (func(*world, *Options), string, *bytes.Buffer) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	return func(_ *world, o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Credentials = map[string]Credential{
			"bearer": {Hosts: []string{"api.example.com"}, Prefix: "Bearer ", Secret: secret},
			"key":    {Hosts: []string{"*.example.com"}, Header: "x-api-key", File: file},
			"git":    {Hosts: []string{"git.example.com"}, Username: "x-access-token", Secret: secret},
		}
	}, file, &log
}

func credentialRules(a, b int) []Rule {
	return []Rule{
		opened(a, b),
		{Name: "up", Host: "api.example.com", Ports: []int{b}, TLS: Upgrade, Credential: "bearer", Paths: []string{"/v1/**"}},
		{Name: "cut", Host: "key.example.com", Ports: []int{b}, TLS: Intercept, Credential: "key", Methods: []string{"GET"}},
		{Name: "git", Host: "git.example.com", Ports: []int{b}, TLS: Intercept, Credential: "git"},
		{Name: "plain", Host: "plain.example.com", Ports: []int{a, b}},
	}
}

func TestCredentialsComeInOutside(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	with, _, log := withSecrets(t)
	w := newWorld(t, credentialRules, with)
	b := port(w.secure)
	for _, x := range []struct {
		name, method, url string
		headers           []string
		status            int
		header, want      string
		credential        string
	}{
		{"plain HTTP goes out by TLS with the header", "GET", fmt.Sprintf("http://api.example.com:%d/v1/x", b), nil, 200, "Authorization", "Bearer " + secret, "bearer"},
		{
			"the client's own header is replaced", "GET", fmt.Sprintf("http://api.example.com:%d/v1/x", b),
			[]string{"authorization", "Bearer mine"}, 200, "Authorization", "Bearer " + secret, "bearer",
		},
		{
			"the client cannot have it taken out as its connection's", "GET", fmt.Sprintf("http://api.example.com:%d/v1/x", b),
			[]string{"Connection", "authorization"}, 200, "Authorization", "Bearer " + secret, "bearer",
		},
		{"another path gets nothing", "GET", fmt.Sprintf("http://api.example.com:%d/v2/x", b), nil, 403, "", "", ""},
		{"TLS that is ended here brings the header", "GET", fmt.Sprintf("https://key.example.com:%d/x", b), nil, 200, "X-Api-Key", secret, "key"},
		{
			"nor has it another that servers take for it", "GET", fmt.Sprintf("https://key.example.com:%d/x", b),
			[]string{"X_Api_Key", "mine", "x.api-key", "mine"}, 200, "X-Api-Key", secret, "key",
		},
		{"methods are seen inside TLS", "DELETE", fmt.Sprintf("https://key.example.com:%d/x", b), nil, 403, "", "", ""},
		{"TRACE inside TLS is refused", "TRACE", fmt.Sprintf("https://git.example.com:%d/x", b), nil, 403, "", "", ""},
		{
			"basic authentication", "GET", fmt.Sprintf("https://git.example.com:%d/x", b), nil, 200,
			"Authorization", "Basic eC1hY2Nlc3MtdG9rZW46czNjcmV0LXQwa2Vu", "git",
		},
		{"a rule without one brings none", "GET", fmt.Sprintf("http://plain.example.com:%d/x", port(w.web)), nil, 200, "Authorization", "", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := len(w.seen())
			status, body := w.ask(w.client(w.inside()), x.method, x.url, x.headers...)
			if status != x.status || strings.Contains(body, secret) {
				t.Fatalf("got %d %q, want %d and no secret", status, body, x.status)
			}
			seen := w.seen()[n:]
			if x.header == "" && len(seen) > 0 {
				t.Fatalf("%v came out", seen[0].Header)
			}
			if x.header != "" {
				if got := seen[0].Header.Get(x.header); got != x.want {
					t.Errorf("%s: %q, want %q", x.header, got, x.want)
				}
				if strings.Contains(fmt.Sprint(seen[0].Header), "mine") {
					t.Errorf("%v came out", seen[0].Header)
				}
				if p := seen[0].Header.Get("Proxy-Authorization"); p != "" {
					t.Errorf("Proxy-Authorization %q came out", p)
				}
			}
			e := w.event()
			if e.Credential != x.credential || strings.Contains(fmt.Sprint(e), secret) {
				t.Errorf("event %+v", e)
			}
		})
	}
	if all := fmt.Sprintf("%+v", spans.GetSpans()); strings.Contains(all, secret) || !strings.Contains(all, "server.address") {
		t.Error("the spans have the secret, or nothing")
	}
	if strings.Contains(log.String(), secret) {
		t.Error("the log has the secret")
	}
}

func TestASecretsFileMayChange(t *testing.T) {
	with, file, log := withSecrets(t)
	w := newWorld(t, credentialRules, with)
	url := fmt.Sprintf("https://key.example.com:%d/x", port(w.secure))
	for _, x := range []struct {
		content string
		status  int
	}{{"another\n", 200}, {"", 502}, {"a\nb", 502}} {
		if err := os.WriteFile(file, []byte(x.content), 0o600); err != nil {
			t.Fatal(err)
		}
		n := len(w.seen())
		status, body := w.ask(w.client(w.inside()), http.MethodGet, url)
		if status != x.status {
			t.Errorf("%q: %d %q", x.content, status, body)
		}
		seen := w.seen()[n:]
		if x.status == 200 && seen[0].Header.Get("X-Api-Key") != "another" || x.status != 200 && len(seen) > 0 {
			t.Errorf("%q: %d requests came out", x.content, len(seen))
		}
	}
	if !strings.Contains(log.String(), "secret is empty") || strings.Contains(log.String(), "another") {
		t.Errorf("log: %s", log.String())
	}
}

func TestSecretsGoToNoServerThatIsNotTheHost(t *testing.T) {
	with, _, _ := withSecrets(t)
	w := newWorld(t, credentialRules, with, func(_ *world, o *Options) { o.Roots = nil }) // the machine trusts no such server
	status, body := w.ask(w.client(w.inside()), http.MethodGet, fmt.Sprintf("http://api.example.com:%d/v1/x", port(w.secure)))
	if e := w.event(); status != 502 || !strings.Contains(body, "certificate") || e.Outcome != Failed || e.Received != 0 {
		t.Errorf("got %d %q, event %+v", status, body, e)
	}
	if len(w.seen()) != 0 {
		t.Error("a request came out")
	}
}

func TestInterceptedRequestsAreForTheConnectionsHost(t *testing.T) {
	with, _, _ := withSecrets(t)
	w := newWorld(t, credentialRules, with)
	b := port(w.secure)
	for _, host := range []string{"git.example.com", fmt.Sprintf("git.example.com:%d", b), fmt.Sprintf("evil.org:%d", b), fmt.Sprintf("key.example.com:%d", b+1)} {
		c := w.client(w.inside())
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://key.example.com:%d/", b), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("Host %s: %d, want 400", host, resp.StatusCode)
		}
	}
	if len(w.seen()) != 0 {
		t.Error("a request came out")
	}
	status, _ := w.ask(w.client(w.roots), http.MethodGet, fmt.Sprintf("https://key.example.com:%d/", b)) // trusts another authority
	if status != 0 {
		t.Errorf("a client that does not trust the node got %d", status)
	}
}

// The target of a request inside TLS that was ended here is a path, or the address of the
// very host: anything else would be another server's to some that serve several, and would
// come with the credential.
func TestInterceptedTargetsAreOfTheConnectionsHost(t *testing.T) {
	with, _, _ := withSecrets(t)
	w := newWorld(t, credentialRules, with)
	b := port(w.secure)
	for _, target := range []string{"https:http://evil.org/steal?x=1", "https:evil.org/x", "https:*", "http:x", "http://evil.org/x", "https://evil.org/x"} {
		t.Run(target, func(t *testing.T) {
			inside := w.tls("git.example.com", b)
			fmt.Fprintf(inside, "GET %s HTTP/1.1\r\nHost: git.example.com:%d\r\n\r\n", target, b)
			resp, err := http.ReadResponse(bufio.NewReader(inside), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if e := w.event(); resp.StatusCode != http.StatusBadRequest || e.Outcome != BadRequest || e.Credential != "" || e.Message == "" {
				t.Errorf("%d, event %+v", resp.StatusCode, e)
			}
			for _, r := range w.seen() {
				t.Errorf("%s came out, with %q", r.RequestURI, r.Header.Get("Authorization"))
			}
		})
	}
}

// A rewritten request has no opaque target, whatever rule decided on it.
func TestRequestsAreWrittenWithoutOpaqueTargets(t *testing.T) {
	in := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https:http://evil.org/steal", nil)
	in = in.WithContext(context.WithValue(in.Context(), routeKey{}, &route{to: target{name: "git.example.com", port: 443}, scheme: "https"}))
	out := in.Clone(in.Context())
	rewrite(&httputil.ProxyRequest{In: in, Out: out})
	if got := out.URL.String(); !strings.HasPrefix(got, "https://git.example.com") || strings.Contains(out.URL.RequestURI(), "evil") {
		t.Errorf("written for %s, as %s", got, out.URL.RequestURI())
	}
}
