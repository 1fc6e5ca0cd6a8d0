package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

const patience = 20 * time.Second

// part is a component that writes down what happens to it.
type part struct {
	notes
	name    string
	events  *diary
	run     func(ctx context.Context) error
	handler http.Handler
	ready   func() error
	close   error
}

func (p *part) Run(ctx context.Context) error {
	defer p.events.add("run of " + p.name + " ended")
	if p.run != nil {
		return p.run(ctx)
	}
	<-ctx.Done()
	return ctx.Err()
}

func (p *part) Close() error { p.events.add(p.name + " closed"); return p.close }

func (p *part) Ready(context.Context) error {
	if p.ready != nil {
		return p.ready()
	}
	return nil
}

// web is a part with a face for browsers.
type web struct{ *part }

func (w web) Handler() http.Handler { return w.handler }

type diary struct {
	mu  sync.Mutex
	all []string
}

func (d *diary) add(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, s)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// running is a Serve under test.
type running struct {
	at    map[string]string // face to address
	local *rpc.Local
	log   *journal
	stop  func() error // once
}

// serve starts Serve and waits until it listens on the faces of c.
func serve(t *testing.T, c rpc.Config, components ...rpc.Component) *running {
	t.Helper()
	j, log := newJournal(t)
	r := &running{at: map[string]string{}, local: rpc.NewLocal(), log: j}
	want := 0
	for _, a := range []string{c.Public, c.Peer, c.HTTP, c.Ops} {
		if a != "" {
			want++
		}
	}
	listening := make(chan struct{}, 4)
	c.OnListen = func(face, address string) { r.at[face] = address; listening <- struct{}{} }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rpc.Serve(ctx, c, telemetry.Discard(log), r.local, components...) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("Serve does not return")
		}
	})
	t.Cleanup(func() { _ = r.stop() })
	for range want {
		select {
		case <-listening:
		case err := <-done:
			t.Fatalf("Serve ended: %v", err)
		}
	}
	return r
}

func (r *running) dial(t *testing.T, face string, o ...rpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := rpc.Dial(r.at[face], o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

func (r *running) get(t *testing.T, face, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.at[face]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func everywhere() rpc.Config {
	return rpc.Config{Public: "127.0.0.1:0", Peer: "127.0.0.1:0", HTTP: "127.0.0.1:0", Ops: "127.0.0.1:0", Grace: 5 * time.Second}
}

func TestServeFaces(t *testing.T) {
	var who principal.Principal
	p := &part{name: "a", events: &diary{}, handler: http.NotFoundHandler()}
	p.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		who, _ = principal.From(ctx)
		return in, nil
	}
	r := serve(t, everywhere(), web{p})
	acme := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "bob"})
	inside := func(cc *grpc.ClientConn) error {
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
		if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != apierr.ReasonPrincipalMissing {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the peer face refuses a malformed principal", func(t *testing.T) {
		for _, bad := range []string{"", "{", `{"tenant":"../x","user":"u"}`, `{"tenant":"x"}`, `{"tenant":"` + strings.Repeat("x", 9000) + `"}`} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), principal.MetadataKey, bad)
			cc, err := grpc.NewClient(r.at["peer"], insecureCredentials)
			if err != nil {
				t.Fatal(err)
			}
			_, err = take(ctx, cc, newNote("x"))
			if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != apierr.ReasonPrincipalMalformed {
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

// waitFor waits until the health service has the wanted status.
func waitFor(t *testing.T, want healthv1.HealthCheckResponse_ServingStatus, cc *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := healthv1.NewHealthClient(cc).Watch(ctx, &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		got, err := s.Recv()
		if err != nil {
			t.Fatalf("waiting for %v: %v", want, err)
		}
		if got.GetStatus() == want {
			return
		}
	}
}

func TestServeOps(t *testing.T) {
	var broken error
	var mu sync.Mutex
	p := &part{name: "a", events: &diary{}, handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })}
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
			for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/metrics": ""} {
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

func TestDrain(t *testing.T) {
	d := &diary{}
	a := &part{name: "a", events: d}
	streaming := make(chan struct{})
	b := &part{name: "b", events: d, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(streaming)
		select {
		case <-rpc.Draining(r.Context()):
			d.add("http stream ended")
		case <-r.Context().Done():
			d.add("http stream cut")
		}
	})}
	a.exchange = func(s grpc.ServerStream) error {
		if err := s.SendMsg(newNote("open")); err != nil {
			return err
		}
		<-s.Context().Done()
		d.add("stream ended")
		return s.Context().Err()
	}
	quiet := rpc.Config{Public: "127.0.0.1:0", HTTP: "127.0.0.1:0", Grace: time.Minute}
	r := serve(t, quiet, a, silent{web{b}})
	s, err := exchange(t.Context(), r.dial(t, "public"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(dynamicpb.NewMessage(note)); err != nil {
		t.Fatal(err)
	}
	page := make(chan struct{})
	go func() { defer close(page); r.get(t, "http", "/stream") }()
	<-streaming

	start := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("the drain took %s although everything ended at once", took)
	}
	<-page
	err = s.RecvMsg(dynamicpb.NewMessage(note))
	if apierr.Code(err) != codes.Unavailable || apierr.Reason(err) != apierr.ReasonDraining {
		t.Errorf("the stream ended with %v", err)
	}
	got := d.read()
	if len(got) != 6 || got[0] != "http stream ended" || got[1] != "stream ended" || got[4] != "b closed" || got[5] != "a closed" {
		t.Errorf("order: %q", got)
	}
}

// silent is a part without RPCs, which would clash with its neighbour's.
type silent struct{ web }

func (silent) RegisterPublic(grpc.ServiceRegistrar) {}
func (silent) RegisterPeer(grpc.ServiceRegistrar)   {}

var insecureCredentials = grpc.WithTransportCredentials(insecure.NewCredentials())

func TestGraceIsOver(t *testing.T) {
	d := &diary{}
	p := &part{name: "a", events: d}
	entered := make(chan struct{})
	p.take = func(ctx context.Context, _ *dynamicpb.Message) (*dynamicpb.Message, error) {
		close(entered)
		<-ctx.Done() // cancelled by force only
		d.add("handler returned")
		return nil, ctx.Err()
	}
	r := serve(t, rpc.Config{Public: "127.0.0.1:0", Grace: 50 * time.Millisecond}, p)
	cc := r.dial(t, "public")
	answer := make(chan error, 1)
	go func() {
		_, err := take(t.Context(), cc, newNote("x"))
		answer <- err
	}()
	<-entered
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := <-answer; apierr.Code(err) == codes.OK {
		t.Error("the call succeeded")
	}
	if got := d.read(); len(got) != 3 || got[0] != "handler returned" || got[2] != "a closed" {
		t.Errorf("order: %q, want Close after the handler", got)
	}
	if len(r.log.lines("level=WARN", "grace was over")) != 1 {
		t.Error("the log does not say that requests were cut")
	}
}

func TestUnaryCallsFinish(t *testing.T) {
	p := &part{name: "a", events: &diary{}}
	entered, release := make(chan struct{}), make(chan struct{})
	p.take = func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		close(entered)
		select {
		case <-release:
			return in, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r := serve(t, rpc.Config{Public: "127.0.0.1:0", Grace: patience}, p)
	cc := r.dial(t, "public")
	answer, stopped := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := take(t.Context(), cc, newNote("x"))
		answer <- err
	}()
	<-entered
	w, err := healthv1.NewHealthClient(cc).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { stopped <- r.stop() }()
	for err == nil { // until the drain has ended the stream
		_, err = w.Recv()
	}
	close(release)
	if err := <-answer; err != nil {
		t.Errorf("a call that ran when the drain began: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A handler that is stuck in Recv or Send does not see the end of its context; the end of the grace frees it.
func TestAStuckStreamIsCut(t *testing.T) {
	d := &diary{}
	p := &part{name: "a", events: d}
	for name, stuck := range map[string]func(grpc.ServerStream) error{
		"receiving": func(s grpc.ServerStream) error { return s.RecvMsg(dynamicpb.NewMessage(note)) },
		"sending": func(s grpc.ServerStream) error {
			for {
				if err := s.SendMsg(newNote(strings.Repeat("x", 1<<20))); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			entered := make(chan struct{})
			p.exchange = func(s grpc.ServerStream) error {
				if err := s.SendMsg(newNote("open")); err != nil {
					return err
				}
				close(entered)
				return stuck(s)
			}
			r := serve(t, rpc.Config{Public: "127.0.0.1:0", Grace: 100 * time.Millisecond}, p)
			if _, err := exchange(t.Context(), r.dial(t, "public")); err != nil {
				t.Fatal(err)
			}
			<-entered
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
	r := serve(t, rpc.Config{Public: "127.0.0.1:0", Grace: time.Second}, p)
	for name, c := range map[string]struct {
		options []rpc.DialOption
		caller  time.Duration
		within  [2]time.Duration
	}{
		"of a minute when nobody says":    {within: [2]time.Duration{30 * time.Second, time.Minute}},
		"of the connection":               {options: []rpc.DialOption{rpc.WithTimeout(time.Hour)}, within: [2]time.Duration{30 * time.Minute, time.Hour}},
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
		"on an address beyond loopback without the flag": {config: rpc.Config{Public: "0.0.0.0:0", Grace: time.Second}, want: "allow-non-loopback"},
		"on an address without a host":                   {config: rpc.Config{HTTP: ":0", Grace: time.Second}, want: "allow-non-loopback"},
		"on a name that may resolve to anything":         {config: rpc.Config{Ops: "example.com:0", Grace: time.Second}, want: "ops:"},
		"on a port that is taken":                        {config: rpc.Config{Peer: taken.Addr().String(), Grace: time.Second}, want: "address already in use"},
		"on what is no address":                          {config: rpc.Config{Peer: "9090", Grace: time.Second}, want: "127.0.0.1:8080"},
		"without a grace":                                {config: rpc.Config{}, want: "grace"},
		"when background work fails": {
			config: rpc.Config{Public: "127.0.0.1:0", Grace: time.Second},
			run:    func(context.Context) error { return broken }, want: "the loop broke",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, log := newJournal(t)
			p := &part{name: "a", events: &diary{}, run: c.run, close: errors.New("close failed too")}
			err := rpc.Serve(t.Context(), c.config, telemetry.Discard(log), rpc.NewLocal(), p)
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

func TestNonLoopbackIsLoud(t *testing.T) {
	r := serve(t, rpc.Config{Ops: "0.0.0.0:0", AllowNonLoopback: true, Grace: time.Second}, &part{name: "a", events: &diary{}})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if len(r.log.lines("level=WARN", "NOTHING AUTHENTICATES", "face=ops")) != 1 {
		t.Error("no warning")
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
	c := rpc.Config{Public: "127.0.0.1:0", Ops: "127.0.0.1:0", Grace: time.Second, OnListen: func(f, a string) { r.at[f] = a; listening <- struct{}{} }}
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
