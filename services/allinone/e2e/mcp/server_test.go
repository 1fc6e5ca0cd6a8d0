// Package mcp calls the tools of a running server over the Model Context Protocol, with the official clients.
package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

func TestMain(m *testing.M) {
	// A connection's heartbeat ends by itself, at its next beat.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// server is all services in one process, which take no call without a credential.
type server struct {
	url    string
	host   *host.Host
	people sessionv1.IdentityServiceClient
	all    sessionv1.SessionServiceClient // as the administrator
	keys   map[string]string              // by user
}

// settings are the server's configuration, further settings put over it.
func settings(t *testing.T, further map[string]any) string {
	t.Helper()
	all := map[string]any{
		"auth": map[string]any{"mode": "required"},
		"session": map[string]any{
			"default-agent": "helper",
			"agents": map[string]any{
				"helper":  map[string]any{"prompt": "Help.", "profile": "full", "tools": []string{"Bash", "Read", "Write"}},
				"curious": map[string]any{"prompt": "Ask.", "profile": "full", "tools": []string{"AskUserQuestion"}},
				"asker":   map[string]any{"prompt": "Ask.", "profile": "ask-writes", "tools": []string{"Read", "Write"}},
			},
		},
	}
	for k, v := range further {
		all[k] = v
	}
	text, err := json.Marshal(all) // JSON is YAML, too
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serve runs the services until the test ends.
func serve(t *testing.T, further map[string]any) *server {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "" {
		t.Skip("bwrap is missing; install it with: apt-get install bubblewrap")
	}
	dir, err := os.MkdirTemp("", "fairlead-mcp-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := host.Defaults(dir)
	args := []string{"--config=" + settings(t, further), "--http=127.0.0.1:0", "--grpc="}
	if err := config.Load(&conf, config.Options{Name: "mcp", Prefix: "FAIRLEAD_", Args: args, Environ: []string{"A=b"}}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := host.New(t.Context(), conf, telemetry.Discard(log), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{host: h, people: sessionv1.NewIdentityServiceClient(h.Peers), all: sessionv1.NewSessionServiceClient(h.Peers), keys: map[string]string{}}
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
		s.url = "http://" + at
	case err := <-ended:
		ended <- nil
		t.Fatalf("the services ended: %v", err)
	}
	if _, err := s.people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{FirstKey: true}); err != nil { // the first one is the administrator's
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob"} {
		s.user(t, user)
	}
	return s
}

// user makes a user and an API key.
func (s *server) user(t *testing.T, id string) {
	t.Helper()
	made, err := s.people.CreateUser(t.Context(), &sessionv1.CreateUserRequest{UserId: id})
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{User: made.User.Name}})
	if err != nil {
		t.Fatal(err)
	}
	s.keys[id] = key.Secret
}

// bearer sends a user's key with each request.
type bearer struct {
	secret string
	base   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.secret)
	return b.base.RoundTrip(r)
}

// http returns a client with a user's key.
func (s *server) http(t *testing.T, user string) *http.Client {
	t.Helper()
	c := &http.Client{Transport: bearer{s.keys[user], &http.Transport{}}}
	t.Cleanup(func() { c.Transport.(bearer).base.CloseIdleConnections() })
	return c
}

// The revisions that clients are tested with: the last with sessions of the protocol, and the first without.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// eras runs a test with both revisions.
func eras(t *testing.T, test func(t *testing.T, revision string)) {
	t.Helper()
	for _, revision := range []string{legacy, modern} {
		t.Run(revision, func(t *testing.T) { test(t, revision) })
	}
}

// connect connects the official Go client at a path.
func (s *server) connect(t *testing.T, user, path, revision string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	if o == nil {
		o = &sdk.ClientOptions{}
	}
	if o.Capabilities == nil && o.ElicitationHandler == nil {
		o.Capabilities = &sdk.ClientCapabilities{}
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.url + path, HTTPClient: s.http(t, user)}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the revision is %s, want %s", got, revision)
	}
	return session
}
