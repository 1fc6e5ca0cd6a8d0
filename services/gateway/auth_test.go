package gateway_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// openToAll lets every caller in.
func openToAll(t testing.TB) *auth.Authenticator {
	t.Helper()
	return knowing(t, auth.Config{Mode: auth.Open}, &oneKey{})
}

func knowing(t testing.TB, c auth.Config, keys auth.Keys) *auth.Authenticator {
	t.Helper()
	a, err := auth.New(c, keys, false, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// oneKey is the key fl_ann, of ann.
type oneKey struct {
	away    bool
	revoked atomic.Bool
}

// ResolveKey implements auth.Keys.
func (k *oneKey) ResolveKey(_ context.Context, hash []byte) (auth.Resolved, error) {
	if k.away {
		return auth.Resolved{}, errors.New("the database is away")
	}
	if k.revoked.Load() {
		return auth.Resolved{}, auth.ErrRefused
	}
	if want := sha256.Sum256([]byte("fl_ann")); string(hash) != string(want[:]) {
		return auth.Resolved{}, auth.ErrRefused
	}
	return auth.Resolved{Principal: principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleOperator, Credential: "keys/k"}}, nil
}

// MostRole implements auth.Keys.
func (*oneKey) MostRole(context.Context, string, string) (principal.Role, error) {
	return principal.RoleAdmin, nil
}

func TestEachPathNeedsACredential(t *testing.T) {
	f, keys := &fake{}, &oneKey{}
	srv := serveAs(t, f, gateway.DefaultConfig(), knowing(t, auth.Config{Mode: auth.Required}, keys))
	paths := []request{
		{"GET", "/v1/sessions/s1", "", nil}, {"POST", "/v1/sessions", "{}", nil}, {"GET", "/v1/sessions/s1/events:stream", "", nil},
		{"POST", "/v1/sessions/s1/turns:stream", `{"text":"hi"}`, nil}, {"GET", "/v1/sessions/s1:export", "", nil}, {"POST", "/v1/sessions:import", "x", nil},
		{"GET", "/v1/tools", "", nil}, {"GET", "/v1/nothing", "", nil}, {"PUT", "/v1/sessions", "", nil},
	}
	for name, c := range map[string]struct {
		header http.Header
		reason string
	}{
		"without one":            {http.Header{}, apierr.ReasonCredentialMissing},
		"with a wrong key":       {http.Header{"Authorization": {"Bearer fl_bob"}}, apierr.ReasonCredentialInvalid},
		"with a malformed one":   {http.Header{"Authorization": {"Basic YTpi"}}, apierr.ReasonCredentialMalformed},
		"with another's api key": {http.Header{"X-Api-Key": {"sk-1"}}, apierr.ReasonCredentialMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range paths {
				r.header = c.header
				got := do(t, srv, r)
				if got.code != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" || problemOf(t, got.body).reason() != c.reason || strings.Contains(got.body, "fl_bob") {
					t.Errorf("%s %s: %d %v %s", r.method, r.path, got.code, got.header, got.body)
				}
			}
		})
	}
	if m, _ := f.last(); m != nil {
		t.Errorf("a service got %v", m)
	}
	for _, header := range []http.Header{{"Authorization": {"Bearer fl_ann"}}, {"X-Api-Key": {"fl_ann"}}} {
		if got := do(t, srv, request{"GET", "/v1/sessions/s1", "", header}); got.code != http.StatusOK {
			t.Errorf("with a key: %d %s", got.code, got.body)
		}
		if p := f.caller(); p.Tenant != "acme" || p.User != "ann" || p.Role != principal.RoleOperator || p.Credential != "keys/k" {
			t.Errorf("the service's caller is %+v", p)
		}
	}
	if got := do(t, srv, request{"GET", "/openapi.json", "", nil}); got.code != http.StatusOK {
		t.Errorf("the specification: %d", got.code)
	}
	keys.away = true
	if got := do(t, srv, request{"GET", "/v1/sessions/s1", "", http.Header{"Authorization": {"Bearer fl_eve"}}}); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("while keys cannot be checked: %d %s", got.code, got.body)
	}
}

func TestEachCallOverGRPCNeedsACredential(t *testing.T) {
	f := &fake{}
	callers := knowing(t, auth.Config{Mode: auth.Required}, &oneKey{})
	conn, _ := serveGRPCAs(t, f, callers)
	web := serveAs(t, f, gateway.DefaultConfig(), callers)
	body := webFrame(0, nil)
	for name, c := range map[string]struct{ header, value, reason string }{
		"without one":          {"x-other", "1", apierr.ReasonCredentialMissing},
		"with a wrong key":     {"authorization", "Bearer fl_bob", apierr.ReasonCredentialInvalid},
		"with a malformed one": {"authorization", "fl_ann", apierr.ReasonCredentialMalformed},
		"with a token of none": {"fairlead-internal-token", "a.b.c", apierr.ReasonCredentialMissing},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), c.header, c.value)
			_, err := sessionv1.NewSessionServiceClient(conn).GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/s1"})
			if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != c.reason {
				t.Errorf("a unary call: %v", err)
			}
			st, err := sessionv1.NewSessionServiceClient(conn).StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: "sessions/s1"})
			if err == nil {
				_, err = st.Recv()
			}
			if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != c.reason {
				t.Errorf("a stream: %v", err)
			}
			_, trailer, _ := webCall(t, web, createPath, "application/grpc-web+proto", body, c.header, c.value)
			if !strings.Contains(trailer, "grpc-status: 16") && !strings.Contains(trailer, "grpc-status:16") {
				t.Errorf("gRPC-Web: %q", trailer)
			}
		})
	}
	if m, _ := f.last(); m != nil {
		t.Errorf("a service got %v", m)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer fl_ann")
	if _, err := sessionv1.NewSessionServiceClient(conn).GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/s1"}); err != nil || f.caller().User != "ann" {
		t.Errorf("with a key: %v, as %+v", err, f.caller())
	}
	if _, trailer, _ := webCall(t, web, createPath, "application/grpc-web+proto", body, "authorization", "Bearer fl_ann"); !strings.Contains(trailer, "grpc-status: 0") && !strings.Contains(trailer, "grpc-status:0") {
		t.Errorf("gRPC-Web with a key: %q", trailer)
	}
}

// Claude Code asks again for more than a minute unless the answer says that it need not.
func TestClientsOfModelAPIsDoNotAskAgainWithAWrongKey(t *testing.T) {
	srv := serveAs(t, &fake{}, gateway.DefaultConfig(), knowing(t, auth.Config{Mode: auth.Required}, &oneKey{}))
	for _, r := range []request{
		{"POST", "/anthropic/v1/messages?beta=true", "{}", nil}, {"POST", "/anthropic/v1/messages/count_tokens", "{}", nil}, {"GET", "/anthropic/v1/models", "", nil},
		{"POST", "/anthropic/v1/sessions", "{}", nil}, {"GET", "/anthropic/v1/agents", "", nil}, {"GET", "/anthropic/v1/nothing", "", nil},
		{"POST", "/openai/v1/chat/completions", "{}", nil}, {"POST", "/openai/v1/responses", "{}", nil}, {"GET", "/openai/v1/agents", "", nil},
	} {
		r.header = http.Header{"Authorization": {"Bearer fl_bob"}}
		if got := do(t, srv, r); got.code != http.StatusUnauthorized || got.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d, X-Should-Retry is %q", r.path, got.code, got.header.Get("X-Should-Retry"))
		}
	}
}
