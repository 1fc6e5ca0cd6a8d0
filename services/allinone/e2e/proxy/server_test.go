// Package proxy calls models through a running server, with the official clients of Anthropic and OpenAI.
package proxy

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestMain(m *testing.M) {
	// A connection's heartbeat ends by itself, at its next beat.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// server is all services in one process, in front of fake providers.
type server struct {
	url               string
	anthropic, openai *modeltest.Server
	sessions          sessionv1.SessionServiceClient // as the administrator
	keys              map[string]string              // by user
	client            *http.Client
}

// weather asks for the weather of two cities, and then says what the last tool has said.
func weather(r modeltest.Request) modeltest.Step {
	u := modeltest.Usage{Input: 40, Output: 12, CacheRead: 5}
	if r.Step == 1 {
		return modeltest.Step{
			Text:  []string{"Let me ", "look. "},
			Calls: []modeltest.Call{{ID: "toolu_1", Name: "weather", Input: `{"city":"Berlin"}`}, {ID: "toolu_2", Name: "weather", Input: `{"city":"Paris"}`}}, Usage: u,
		}
	}
	return modeltest.Step{Text: []string{"It is ", r.LastResult, "."}, Usage: u}
}

// serve runs the services until the test ends. Without a mode of authentication they take no call without a credential.
func serve(t *testing.T, mode string, script modeltest.Script, session map[string]any) *server {
	t.Helper()
	s := &server{anthropic: modeltest.Anthropic(t, script), openai: modeltest.OpenAI(t, script), keys: map[string]string{}, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	all := map[string]any{
		"anthropic-api-key": modeltest.Key, "anthropic-base-url": s.anthropic.URL, "openai-api-key": modeltest.Key, "openai-base-url": s.openai.URL,
	}
	for k, v := range session {
		all[k] = v
	}
	text, err := json.Marshal(map[string]any{"auth": map[string]any{"mode": mode}, "session": all}) // JSON is YAML, too
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := host.Defaults(dir)
	args := []string{"--config=" + file, "--http=127.0.0.1:0", "--grpc="}
	if err := config.Load(&conf, config.Options{Name: "proxy", Prefix: "FAIRLEAD_", Args: args, Environ: []string{"A=b"}}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := host.New(t.Context(), conf, telemetry.Discard(log), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	s.sessions = sessionv1.NewSessionServiceClient(h.Peers)
	s.run(t, h)
	if mode == "required" {
		people := sessionv1.NewIdentityServiceClient(h.Peers)
		if _, err := people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{FirstKey: true}); err != nil { // the first one is the administrator's
			t.Fatal(err)
		}
		for _, user := range []string{"ann", "bob"} {
			s.user(t, people, user)
		}
	}
	return s
}

func (s *server) run(t *testing.T, h *host.Host) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(_, at string) { address <- at }) }()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
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
}

// user makes a user and an API key.
func (s *server) user(t *testing.T, people sessionv1.IdentityServiceClient, id string) {
	t.Helper()
	made, err := people.CreateUser(t.Context(), &sessionv1.CreateUserRequest{UserId: id})
	if err != nil {
		t.Fatal(err)
	}
	key, err := people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{User: made.User.Name}})
	if err != nil {
		t.Fatal(err)
	}
	s.keys[id] = key.Secret
}

// answer is a whole HTTP answer.
type answer struct {
	code   int
	header http.Header
	body   string
}

// call makes a request; header has names and values in turn.
func (s *server) call(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}
