package gateway_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/gen/openapi"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

const app = "https://app.example"

func allowApp(c *gateway.Config) { c.AllowedOrigins = []string{app} }

// list returns the entries of a header with a comma-separated list.
func list(h http.Header, name string) []string {
	var all []string
	for item := range strings.SplitSeq(h.Get(name), ",") {
		all = append(all, strings.ToLower(strings.TrimSpace(item)))
	}
	return all
}

var variable = regexp.MustCompile(`\{[^}]*\}`)

func TestAPageMayMakeEveryRequestOfTheSpecification(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct{ Parameters []struct{ Name, In string } }
	}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	srv := serve(t, &fake{}, allowApp)
	requests := 0
	for template, item := range doc.Paths {
		path := variable.ReplaceAllString(template, "x")
		for method, op := range item {
			requests++
			method = strings.ToUpper(method)
			got := do(t, srv, request{"OPTIONS", path, "", http.Header{"Origin": {app}, "Access-Control-Request-Method": {method}}})
			if got.code != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != app {
				t.Errorf("preflight of %s %s: status %d, headers %v", method, path, got.code, got.header)
			}
			if methods := list(got.header, "Access-Control-Allow-Methods"); !slices.Contains(methods, strings.ToLower(method)) {
				t.Errorf("%s is not among the methods of %s: %v", method, path, methods)
			}
			want := []string{"authorization", "content-type", "traceparent", "x-api-key"}
			for _, p := range op.Parameters {
				if p.In == "header" {
					want = append(want, strings.ToLower(p.Name))
				}
			}
			for _, name := range want {
				if !slices.Contains(list(got.header, "Access-Control-Allow-Headers"), name) {
					t.Errorf("a page may not send %s to %s %s", name, method, path)
				}
			}
			if got.header.Get("Access-Control-Max-Age") != "7200" {
				t.Errorf("%s %s: the preflight's answer is kept for %q seconds", method, path, got.header.Get("Access-Control-Max-Age"))
			}
		}
	}
	if requests < 40 {
		t.Errorf("only %d requests were found", requests)
	}
}

func TestAPathTakesOnlyItsOwnMethods(t *testing.T) {
	srv := serve(t, &fake{}, allowApp)
	for path, want := range map[string]string{
		"/v1/sessions/s1":                 "DELETE, GET, HEAD, OPTIONS, PATCH",
		"/v1/users/u/variables/v":         "DELETE, OPTIONS, PUT",
		"/v1/sessions/s1:export":          "GET, OPTIONS",
		"/openapi.json":                   "GET, HEAD",
		"/v1/nothing":                     "DELETE, GET, HEAD, PATCH, POST, PUT",
		"/v1/sessions/s1/events:stream":   "GET, OPTIONS",
		"/v1/sessions/s1/approvals:other": "DELETE, GET, HEAD, PATCH, POST, PUT",
	} {
		got := do(t, srv, request{"OPTIONS", path, "", http.Header{"Origin": {app}, "Access-Control-Request-Method": {"PUT"}}})
		if methods := got.header.Get("Access-Control-Allow-Methods"); methods != want {
			t.Errorf("%s: %q, want %q", path, methods, want)
		}
	}
}

func TestPagesOfAllowedOriginsMayCall(t *testing.T) {
	srv := serve(t, &fake{}, allowApp)
	ours := http.Header{"Origin": {app}, "Sec-Fetch-Site": {"cross-site"}}
	got := do(t, srv, request{"POST", "/v1/sessions", `{}`, ours})
	if got.code != http.StatusOK || got.header.Get("Access-Control-Allow-Origin") != app || got.header.Get("Vary") != "Origin" {
		t.Errorf("POST: %+v", got)
	}
	for _, name := range []string{"idempotency-key", "retry-after", "x-request-id", "www-authenticate"} {
		if !slices.Contains(list(got.header, "Access-Control-Expose-Headers"), name) {
			t.Errorf("a page may not read %s", name)
		}
	}
	if got.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("a browser sends cookies")
	}
	for _, origin := range []string{"https://app.example.evil", "http://app.example", "null"} {
		got = do(t, srv, request{"POST", "/v1/sessions", `{}`, http.Header{"Origin": {origin}}})
		if got.code != http.StatusForbidden || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %+v", origin, got)
		}
	}
}

func TestEveryAnswerHasTheHeadersOfSecurity(t *testing.T) {
	f := &fake{events: replay(1)}
	srv := serve(t, f)
	for _, r := range []request{
		{"GET", "/v1/sessions/s1", "", nil},
		{"GET", "/v1/nothing", "", nil},
		{"POST", "/v1/sessions/s1/turns", "{", nil},
		{"DELETE", "/v1/sessions", "", nil},
		{"OPTIONS", "/v1/sessions", "", nil},
		{"GET", "/openapi.json", "", nil},
		{"GET", eventsPath, "", wantSSE},
		{"GET", "/v1/sessions/s1:export", "", nil},
	} {
		got := do(t, srv, r)
		for name, want := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy":              "no-referrer",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s %s: %s is %q", r.method, r.path, name, got.header.Get(name))
			}
		}
		if len(got.header.Get("X-Request-Id")) < 16 {
			t.Errorf("%s %s: X-Request-Id is %q", r.method, r.path, got.header.Get("X-Request-Id"))
		}
		if cc := got.header.Get("Cache-Control"); r.path != "/openapi.json" && !strings.Contains(cc, "no-store") {
			t.Errorf("%s %s may be cached: %q", r.method, r.path, cc)
		}
	}
}

func TestAFaultHasTheIDUnderWhichItIsLogged(t *testing.T) {
	f := &fake{fail: apierr.Internal("fault-1")}
	srv := serve(t, f)
	if got := do(t, srv, request{"GET", "/v1/sessions/s1", "", nil}); got.header.Get("X-Request-Id") != "fault-1" {
		t.Errorf("X-Request-Id is %q, want that of the service's log: %s", got.header.Get("X-Request-Id"), got.body)
	}
	f.fail = errors.New("secret")
	if got := do(t, srv, request{"GET", "/v1/sessions/s1", "", nil}); !strings.Contains(got.body, got.header.Get("X-Request-Id")) {
		t.Errorf("X-Request-Id is %q, which the error does not have: %s", got.header.Get("X-Request-Id"), got.body)
	}
}

// A client that takes compressed answers gets each event when it is made: the second one is made after the first has
// arrived.
func TestNoCompressionDelaysAnEvent(t *testing.T) {
	arrived := make(chan struct{})
	f := &fake{events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		if err := st.Send(eventResponse(textEvent(1, "one"))); err != nil {
			return err
		}
		select {
		case <-arrived:
		case <-st.Context().Done():
		}
		return nil
	}}
	srv := serve(t, f)
	resp := send(t, t.Context(), srv, request{"GET", eventsPath, "", http.Header{"Accept": {"text/event-stream"}, "Accept-Encoding": {"gzip, br, zstd"}}})
	defer func() { _ = resp.Body.Close() }()
	if resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("X-Accel-Buffering") != "no" || !strings.Contains(resp.Header.Get("Cache-Control"), "no-transform") {
		t.Errorf("headers %v", resp.Header)
	}
	got := ""
	for buf := make([]byte, 1<<10); !strings.Contains(got, "one"); {
		n, err := resp.Body.Read(buf)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got += string(buf[:n])
	}
	close(arrived)
}
