package rpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
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
	lacks   []string
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

// Notes implements rpc.Noter.
func (p *part) Notes() []string { return p.lacks }

// web is a part with a face for browsers.
type web struct{ *part }

func (w web) Handler() http.Handler { return w.handler }

// AllowedOrigins implements rpc.HTTPComponent.
func (web) AllowedOrigins() []string { return []string{"https://app.example"} }

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
	r := &running{at: map[string]string{}, local: rpc.NewLocal(keys), log: j}
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
	if face == "peer" {
		o = append([]rpc.DialOption{rpc.WithKeys(keys)}, o...)
	}
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
	return rpc.Config{Public: "127.0.0.1:0", Peer: "127.0.0.1:0", HTTP: "127.0.0.1:0", Ops: "127.0.0.1:0", Grace: 5 * time.Second, Keys: keys, Auth: open}
}

// waitFor waits until the health service has the wanted status.
func waitFor(t *testing.T, want healthv1.HealthCheckResponse_ServingStatus, cc grpc.ClientConnInterface) {
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

// keys are those of all servers and callers here.
var keys = internaltoken.Random()

// open lets every client in.
var open = func() *auth.Authenticator {
	a, err := auth.New(auth.Config{Mode: auth.Open}, nil, false, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	return a
}()

var insecureCredentials = grpc.WithTransportCredentials(insecure.NewCredentials())
