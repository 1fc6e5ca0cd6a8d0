package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client makes the requests of all tests.
var client = &http.Client{}

// serve runs a gateway in front of f on a loopback address until the test ends.
func serve(t *testing.T, f *fake, change ...func(*gateway.Config)) *httptest.Server {
	t.Helper()
	c := gateway.DefaultConfig()
	for _, ch := range change {
		ch(&c)
	}
	return serveAs(t, f, c, openToAll(t))
}

// serveAs is serve for given callers.
func serveAs(t *testing.T, f *fake, c gateway.Config, callers *auth.Authenticator) *httptest.Server {
	t.Helper()
	conn := rpctest.Dial(t, f.register)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := gateway.New(t.Context(), c, gateway.Deps{Session: conn, Tools: conn, Auth: callers, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	t.Cleanup(client.CloseIdleConnections)
	return srv
}

// request is one HTTP request of a test.
type request struct {
	method, path, body string
	header             http.Header
}

// answer is what came back.
type answer struct {
	code   int
	header http.Header
	body   string
}

// do makes a request, with JSON as the body's type unless the request says another.
func do(t *testing.T, srv *httptest.Server, r request) answer {
	t.Helper()
	resp := send(t, t.Context(), srv, r)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: read the body: %v", r.method, r.path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func send(t *testing.T, ctx context.Context, srv *httptest.Server, r request) *http.Response { //nolint:revive // t comes first here
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, r.method, srv.URL+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	return resp
}

// problem is a google.rpc.Status as JSON.
type problem struct {
	Code    int
	Message string
	Details []struct {
		Type            string `json:"@type"`
		Reason          string
		Domain          string
		FieldViolations []struct{ Field, Description string }
	}
}

func (p problem) reason() string {
	for _, d := range p.Details {
		if d.Reason != "" {
			return d.Reason
		}
	}
	return ""
}

func (p problem) field() string {
	for _, d := range p.Details {
		for _, v := range d.FieldViolations {
			return v.Field
		}
	}
	return ""
}

func problemOf(t *testing.T, body string) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("the body is no JSON status: %v\n%s", err, body)
	}
	return p
}
