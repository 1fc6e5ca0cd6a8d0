package doors

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// server is all services in one process, which take no call without a credential.
type server struct {
	url    string
	conn   *grpc.ClientConn
	client *http.Client
	issuer *issuer
	log    *record
	spans  *tracetest.InMemoryExporter
}

// internalSeed is the key by which the services know each other.
var internalSeed = bytes.Repeat([]byte{7}, 32)

// serve runs the services until the test ends, on a Postgres or, without an address, on SQLite.
func serve(t *testing.T, database string) *server {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "" {
		t.Skip("bwrap is missing; install it with: apt-get install bubblewrap")
	}
	dir, err := os.MkdirTemp("", "fairlead-doors-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{client: &http.Client{Transport: &http.Transport{}}, issuer: newIssuer(), log: &record{}, spans: tracetest.NewInMemoryExporter()}
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans)))
	conf := host.Defaults(dir)
	args := []string{"--config=" + s.configure(t), "--http=127.0.0.1:0", "--grpc=127.0.0.1:0"}
	environ := []string{"A=b"}
	if database != "" { // with several replicas, files need a store that all reach
		environ = append(environ, "FAIRLEAD_DATABASE_URL="+database)
		args = append(args, "--session.files.store=file://"+dir+"/shared")
	}
	if err := config.Load(&conf, config.Options{Name: "doors", Prefix: "FAIRLEAD_", Args: args, Environ: environ}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h, err := host.New(t.Context(), conf, telemetry.Discard(log), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, h)
	return s
}

// configure writes the configuration, and the public key of the issuer.
func (s *server) configure(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	scenario, err := filepath.Abs(filepath.Join("testdata", "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML, too
		"auth": map[string]any{
			"mode":         "required",
			"internal-key": base64.StdEncoding.EncodeToString(internalSeed),
			"issuers": []any{
				map[string]any{
					"issuer": issuerName, "audience": audience, "jwks-file": filepath.Join(dir, "jwks.json"),
					"tenant-claim": "tenant", "role-claim": "roles", "roles": map[string]string{"admin": "admin", "user": "user"}, "role": "none",
				},
				map[string]any{
					"issuer": operators, "audience": audience, "jwks-file": filepath.Join(dir, "jwks.json"),
					"tenant": "default", "role-claim": "roles", "roles": map[string]string{"admin": "admin"}, "role": "none",
				},
			},
		},
		"session": map[string]any{
			"model":     "play:doors",
			"providers": map[string]any{"play": map[string]any{"kind": "scripted", "scenario": scenario}},
			"agents": map[string]any{
				"writer": map[string]any{"description": "writes", "prompt": "Write.", "profile": "full", "tools": []string{"Write"}},
				"worker": map[string]any{"description": "works", "prompt": "Work.", "profile": "full", "tools": []string{"Bash"}},
				"asker":  map[string]any{"description": "asks before it writes", "prompt": "Ask.", "profile": "ask-writes", "tools": []string{"Write", "GetMcpPrompt", "ReadMcpResource"}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"config.yaml": text, "jwks.json": s.issuer.keySet()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.yaml")
}

// run starts the listeners, and connects to them.
func (s *server) run(t *testing.T, h *host.Host) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	type listener struct{ face, address string }
	listening, ended := make(chan listener, 8), make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(face, address string) { listening <- listener{face, address} }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the services: %v", err)
		}
	})
	for s.url == "" || s.conn == nil {
		select {
		case l := <-listening:
			if l.face == "http" {
				s.url = "http://" + l.address
				continue
			}
			if l.face == "peer" || l.face == "ops" {
				continue
			}
			var err error
			if s.conn, err = grpc.NewClient(l.address, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
				t.Fatal(err)
			}
		case err := <-ended:
			ended <- nil
			t.Fatalf("the services ended: %v", err)
		}
	}
	t.Cleanup(func() {
		_ = s.conn.Close()
		s.client.CloseIdleConnections()
	})
}

// record keeps what is written to it.
type record struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}
