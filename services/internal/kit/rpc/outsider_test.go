package rpc_test

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// A trusted proxy names the client; a client's own word about itself counts nowhere.
func TestTheClientOfACall(t *testing.T) {
	for name, trusted := range map[string][]string{"behind a trusted proxy": {"127.0.0.0/8"}, "without trusted proxies": nil} {
		t.Run(name, func(t *testing.T) {
			var client string
			var isPart bool
			p := &part{name: "a", events: &diary{}}
			p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })
			p.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
				client, isPart = rpc.Client(ctx), rpc.IsPart(ctx)
				return in, nil
			}
			c := everywhere()
			c.TrustedProxies = trusted
			r := serve(t, c, web{p})
			expected := "203.0.113.7"
			if trusted == nil {
				expected = "127.0.0.1"
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.at["http"]+"/any", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Forwarded-For", "6.6.6.6, 203.0.113.7")
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if !strings.HasPrefix(string(body), expected+":") {
				t.Errorf("the client of the request is %s, want %s", body, expected)
			}
			ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "6.6.6.6, 203.0.113.7", "fairlead-client", "7.7.7.7", "fairlead-part", "1")
			if _, err := take(ctx, r.dial(t, "public"), newNote("x")); err != nil || client != expected || isPart {
				t.Errorf("the client of the call is %s, want %s; part %v; %v", client, expected, isPart, err)
			}
			inside := principal.With(ctx, principal.Service("acme", "bob")) // what a peer says of its client, and no header
			if _, err := take(rpc.WithClient(inside, "198.51.100.1:80"), r.dial(t, "peer"), newNote("x")); err != nil || client != "198.51.100.1" || isPart {
				t.Errorf("the client of a peer's call is %s; part %v; %v", client, isPart, err)
			}
		})
	}
}

// Of the calls that a gateway makes for a request of a client, all but the first say that they are parts of it.
func TestFurtherCallsOfARequestAreParts(t *testing.T) {
	var parts []bool
	p := &part{name: "a", events: &diary{}}
	p.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		parts = append(parts, rpc.IsPart(ctx))
		return in, nil
	}
	r := serve(t, everywhere(), p)
	ann := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleAdmin})
	for name, conn := range map[string]grpc.ClientConnInterface{"by gRPC": r.dial(t, "peer"), "in memory": r.local.Conn} {
		parts = nil
		request := rpc.WithClient(ann, "198.51.100.1:80")
		service := principal.With(request, principal.Service("acme", "ann"))
		for _, ctx := range []context.Context{service, request, request, service, rpc.WithClient(ann, "198.51.100.1:80"), ann, ann} {
			if _, err := take(ctx, conn, newNote("x")); err != nil {
				t.Fatal(err)
			}
		}
		if want := []bool{false, false, true, false, false, false, false}; !slices.Equal(parts, want) {
			t.Errorf("%s: %v, want %v", name, parts, want)
		}
	}
}

// holders knows the holders of keys.
type holders map[string]principal.Principal

func (h holders) ResolveKey(_ context.Context, hash []byte) (auth.Resolved, error) {
	for key, p := range h {
		if sum := sha256.Sum256([]byte(key)); string(sum[:]) == string(hash) {
			return auth.Resolved{Principal: p}, nil
		}
	}
	return auth.Resolved{}, auth.ErrRefused
}

func (holders) MostRole(context.Context, string, string) (principal.Role, error) {
	return principal.RoleAdmin, nil
}

func TestTheMetricsOnTheListenerForClientsNeedAnOperator(t *testing.T) {
	who := func(tenant string, r principal.Role, scopes ...string) principal.Principal {
		return principal.Principal{Tenant: tenant, User: "u", Role: r, Scopes: scopes}
	}
	known := holders{
		"fl_user": who("default", principal.RoleUser), "fl_operator": who("default", principal.RoleOperator), "fl_admin": who("default", principal.RoleAdmin),
		"fl_acme": who("acme", principal.RoleAdmin), "fl_other": who("default", principal.RoleAdmin, "sessions.read"), "fl_prometheus": who("default", principal.RoleOperator, rpc.MetricsScope),
	}
	a, err := auth.New(auth.Config{Mode: auth.Required}, known, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	page := web{&part{name: "a", events: &diary{}, handler: http.NotFoundHandler()}}
	c := everywhere()
	c.Ops, c.Auth = "", a
	r := serve(t, c, page)
	for key, want := range map[string]int{"": 401, "fl_unknown": 401, "fl_user": 403, "fl_acme": 403, "fl_other": 403, "fl_operator": 200, "fl_admin": 200, "fl_prometheus": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.at["http"]+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want != 200 && !strings.Contains(string(body), `"reason"`) || want == 401 && resp.Header.Get("Www-Authenticate") != "Bearer" {
			t.Errorf("%q: %d %s, want %d", key, resp.StatusCode, body, want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := r.get(t, "http", path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	c.Ops = "127.0.0.1:0"
	r = serve(t, c, page)
	if code, body := r.get(t, "ops", "/metrics"); code != http.StatusOK {
		t.Errorf("on its own listener: %d %s", code, body)
	}
	if code, _ := r.get(t, "http", "/metrics"); code != http.StatusNotFound {
		t.Errorf("beside its own listener: %d", code)
	}
}

// A client chooses the names of RPCs that do not exist, and would make a series with each.
func TestNamesThatClientsMakeUpAreNoLabels(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	old := otel.GetMeterProvider()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	t.Cleanup(func() { otel.SetMeterProvider(old) })
	p := &part{name: "a", events: &diary{}}
	p.take = func(_ context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) { return in, nil }
	r := serve(t, everywhere(), p)
	cc := r.dial(t, "public")
	if _, err := take(t.Context(), cc, newNote("x")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/made.up/N", "/made.up.Service/M1", "/fairlead.test.v1.Notes/MadeUp", "/fairlead.test.v1.Note/Take", "/a/b/c"} {
		if err := cc.Invoke(t.Context(), name, newNote("x"), dynamicpb.NewMessage(note)); apierr.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", name, err)
		}
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, d := range h.DataPoints {
					v, _ := d.Attributes.Value("rpc.method")
					seen[v.AsString()] = true
				}
			}
		}
	}
	if len(seen) != 1 || !seen[unaryMethod[1:]] {
		t.Errorf("the labels are %v", seen)
	}
}
