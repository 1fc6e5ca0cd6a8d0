package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

func TestServeFaces(t *testing.T) {
	var who principal.Principal
	p := &part{name: "a", events: &diary{}, handler: http.NotFoundHandler()}
	p.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		who, _ = principal.From(ctx)
		return in, nil
	}
	r := serve(t, everywhere(), web{p})
	acme := principal.With(t.Context(), principal.Service("acme", "bob"))
	inside := func(cc grpc.ClientConnInterface) error {
		return cc.Invoke(acme, "/fairlead.test.v1.Inside/Take", newNote("x"), dynamicpb.NewMessage(note))
	}
	t.Run("the public face makes everybody the default principal", func(t *testing.T) {
		if _, err := take(acme, r.dial(t, "public"), newNote("x")); err != nil || who.Tenant != "default" {
			t.Errorf("principal %+v, error %v", who, err)
		}
	})
	t.Run("the public face does not serve internal RPCs", func(t *testing.T) {
		if err := inside(r.dial(t, "public")); apierr.Code(err) != codes.Unimplemented {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the peer face serves both and believes the principal", func(t *testing.T) {
		cc := r.dial(t, "peer")
		if err := inside(cc); err != nil || who.Tenant != "acme" {
			t.Errorf("principal %+v, error %v", who, err)
		}
		if _, err := take(acme, cc, newNote("x")); err != nil {
			t.Error(err)
		}
	})
	t.Run("the peer face refuses a call without a principal", func(t *testing.T) {
		_, err := take(t.Context(), r.dial(t, "peer"), newNote("x"))
		if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != apierr.ReasonInternalTokenMissing {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the peer face refuses a malformed principal", func(t *testing.T) {
		for _, bad := range []string{"", "{", `{"tenant":"../x","user":"u"}`, `{"tenant":"x"}`, `{"tenant":"` + strings.Repeat("x", 9000) + `"}`} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), internaltoken.MetadataKey, bad)
			cc, err := grpc.NewClient(r.at["peer"], insecureCredentials)
			if err != nil {
				t.Fatal(err)
			}
			_, err = take(ctx, cc, newNote("x"))
			if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != apierr.ReasonInternalTokenInvalid {
				t.Errorf("%.40q: got %v", bad, err)
			}
			_ = cc.Close()
		}
	})
	t.Run("the in-memory listener is a peer face", func(t *testing.T) {
		if err := inside(r.local.Conn); err != nil || who.Tenant != "acme" {
			t.Errorf("principal %+v, error %v", who, err)
		}
	})
	t.Run("health and reflection need no principal", func(t *testing.T) {
		for _, face := range []string{"public", "peer"} {
			cc := r.dial(t, face)
			waitFor(t, healthv1.HealthCheckResponse_SERVING, cc)
			s, err := reflectionv1.NewServerReflectionClient(cc).ServerReflectionInfo(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Recv(); err != nil || !strings.Contains(got.String(), "fairlead.test.v1.Notes") {
				t.Errorf("%s: reflection says %v, %v", face, got, err)
			}
			if err := s.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestServeOps(t *testing.T) {
	var broken error
	var mu sync.Mutex
	p := &part{name: "a", events: &diary{}, handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })}
	p.lacks = []string{"a mount is missing"}
	p.ready = func() error {
		mu.Lock()
		defer mu.Unlock()
		return broken
	}
	for name, c := range map[string]struct{ ops, face string }{
		"on a listener of its own":         {"127.0.0.1:0", "ops"},
		"on the http listener without one": {"", "http"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := everywhere()
			conf.Ops = c.ops
			r := serve(t, conf, web{p})
			for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready\na mount is missing\n", "/metrics": ""} {
				if code, body := r.get(t, c.face, path); code != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("%s: %d %q", path, code, body)
				}
			}
			if code, body := r.get(t, "http", "/any"); code != http.StatusOK || body != "page" {
				t.Errorf("the component's page: %d %q", code, body)
			}
			mu.Lock()
			broken = errors.New("the database of bob is gone")
			mu.Unlock()
			if code, body := r.get(t, c.face, "/readyz"); code != http.StatusServiceUnavailable || strings.Contains(body, "bob") {
				t.Errorf("/readyz of a broken part: %d %q", code, body)
			}
			mu.Lock()
			broken = errors.Join(broken, rpc.NotReadyError{"agent a: no tool x", "agent b: no tool y"})
			mu.Unlock()
			if _, body := r.get(t, c.face, "/readyz"); body != "not ready\nagent a: no tool x\nagent b: no tool y\n" {
				t.Errorf("/readyz of a part that says why: %q", body)
			}
			waitFor(t, healthv1.HealthCheckResponse_NOT_SERVING, r.dial(t, "peer"))
			mu.Lock()
			broken = nil
			mu.Unlock()
			waitFor(t, healthv1.HealthCheckResponse_SERVING, r.dial(t, "peer"))
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCallsHaveADeadline(t *testing.T) {
	var left time.Duration
	p := &part{name: "a", events: &diary{}}
	p.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		at, _ := ctx.Deadline()
		left = time.Until(at)
		return in, nil
	}
	r := serve(t, rpc.Config{Auth: open, Public: "127.0.0.1:0", Grace: time.Second}, p)
	for name, c := range map[string]struct {
		options []rpc.DialOption
		caller  time.Duration
		within  [2]time.Duration
	}{
		"of a minute when nobody says":    {within: [2]time.Duration{30 * time.Second, time.Minute}},
		"of the caller, also a later one": {caller: 2 * time.Hour, within: [2]time.Duration{time.Hour, 2 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.caller > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.caller)
				defer cancel()
			}
			if _, err := take(ctx, r.dial(t, "public", c.options...), newNote("x")); err != nil {
				t.Fatal(err)
			}
			if left < c.within[0] || left > c.within[1] {
				t.Errorf("the handler had %s", left)
			}
		})
	}
	if _, err := rpc.Dial(""); err == nil {
		t.Error("Dial takes an empty address")
	}
	cc, err := rpc.Dial("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cc.Close() }()
	if _, err := take(t.Context(), cc, newNote("x")); apierr.Code(err) != codes.Unavailable {
		t.Errorf("a service that is not there: %v", err)
	}
}

func TestServeFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	broken := errors.New("the loop broke")
	for name, c := range map[string]struct {
		config rpc.Config
		run    func(context.Context) error
		want   string
	}{
		"on an address beyond loopback without the flag": {config: rpc.Config{Auth: open, Public: "0.0.0.0:0", Grace: time.Second}, want: "allow-non-loopback"},
		"on an address without a host":                   {config: rpc.Config{HTTP: ":0", Grace: time.Second}, want: "allow-non-loopback"},
		"on a name that may resolve to anything":         {config: rpc.Config{Ops: "example.com:0", Grace: time.Second}, want: "ops:"},
		"on a port that is taken":                        {config: rpc.Config{Peer: taken.Addr().String(), Grace: time.Second, Keys: keys}, want: "address already in use"},
		"on what is no address":                          {config: rpc.Config{Peer: "9090", Grace: time.Second}, want: "127.0.0.1:8080"},
		"with a peer listener without keys":              {config: rpc.Config{Peer: "127.0.0.1:0", Grace: time.Second}, want: "no keys for internal tokens"},
		"without a grace":                                {config: rpc.Config{}, want: "grace"},
		"when background work fails": {
			config: rpc.Config{Auth: open, Public: "127.0.0.1:0", Grace: time.Second},
			run:    func(context.Context) error { return broken }, want: "the loop broke",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, log := newJournal(t)
			p := &part{name: "a", events: &diary{}, run: c.run, close: errors.New("close failed too")}
			err := rpc.Serve(t.Context(), c.config, telemetry.Discard(log), rpc.NewLocal(keys), p)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err == nil || !strings.Contains(err.Error(), "close failed too") {
				t.Errorf("the error of Close is missing from %v", err)
			}
			if got := p.events.read(); got[len(got)-1] != "a closed" {
				t.Errorf("Serve left its component open: %q", got)
			}
		})
	}
}

func TestAListenerIsInTheLog(t *testing.T) {
	r := serve(t, rpc.Config{Ops: "0.0.0.0:0", AllowNonLoopback: true, Grace: time.Second}, &part{name: "a", events: &diary{}})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if len(r.log.lines("msg=listening", "face=ops", "address=")) != 1 {
		t.Error("no line about the listener")
	}
}

// The metrics of a server must not grow with what clients make up.
func TestMetricLabelsAreClosed(t *testing.T) {
	tel, err := telemetry.Setup(t.Context(), "test", "v0", telemetry.DefaultConfig(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	tel.Log = slog.New(slog.DiscardHandler)
	r := &running{at: map[string]string{}}
	listening := make(chan struct{}, 2)
	c := rpc.Config{Auth: open, Public: "127.0.0.1:0", Ops: "127.0.0.1:0", Grace: time.Second, OnListen: func(f, a string) { r.at[f] = a; listening <- struct{}{} }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rpc.Serve(ctx, c, tel, nil, &part{name: "a", events: &diary{}}) }()
	<-listening
	<-listening
	cc := r.dial(t, "public")
	if _, err := take(t.Context(), cc, newNote("x")); err != nil {
		t.Fatal(err)
	}
	raw, err := grpc.NewClient(r.at["public"], insecureCredentials)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_ = raw.Invoke(t.Context(), fmt.Sprintf("/made.up/Method%d", i), newNote("x"), dynamicpb.NewMessage(note))
	}
	_ = raw.Close()
	_, body := r.get(t, "ops", "/metrics")
	if !strings.Contains(body, "fairlead.test.v1.Notes/Take") && !strings.Contains(body, `"Take"`) {
		t.Errorf("no metric of the RPC:\n%s", body)
	}
	for _, open := range []string{"Method1", "127.0.0.1"} {
		if i := strings.Index(body, open); i >= 0 {
			t.Errorf("a client's %q is in the metrics: %s", open, body[max(0, i-300):i+50])
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
