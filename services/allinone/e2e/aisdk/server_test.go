// Package aisdk speaks the UI message stream of the AI SDK with a running server: by hand, and with the official clients.
package aisdk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// child is set in a process that is a server for a test to kill: its arguments.
const child = "FAIRLEAD_TEST_AISDK"

func TestMain(m *testing.M) {
	if args := os.Getenv(child); args != "" {
		os.Exit(beServer(strings.Fields(args)))
	}
	// A connection's heartbeat ends by itself, at its next beat.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// beServer runs all services until it is killed: in dir, with a configuration, at an address.
func beServer(args []string) int {
	dir, file, address := args[0], args[1], args[2]
	h, err := open(context.Background(), dir, file, address, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err == nil {
		err = h.Run(context.Background(), func(_, at string) { fmt.Println(at) })
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func open(ctx context.Context, dir, file, address string, log *slog.Logger) (*host.Host, error) {
	conf := host.Defaults(dir)
	args := []string{"--config=" + file, "--http=" + address, "--grpc="}
	if err := config.Load(&conf, config.Options{Name: "aisdk", Prefix: "FAIRLEAD_", Args: args, Environ: []string{"A=b"}}); err != nil {
		return nil, err
	}
	return host.New(ctx, conf, telemetry.Discard(log), "v1.2.3")
}

// server is all services.
type server struct {
	url    string
	client *http.Client
	keys   map[string]string // by user
	dir    string
	config string
	cmd    *exec.Cmd // of a server to kill
}

// settings writes the server's configuration.
func settings(t *testing.T, mode string) string {
	t.Helper()
	scenario, err := filepath.Abs("testdata/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML, too
		"auth": map[string]any{"mode": mode},
		"session": map[string]any{
			"scenario": scenario, "model": "scripted:chat", "default-agent": "helper",
			"agents": map[string]any{
				"helper": map[string]any{"prompt": "Help.", "profile": "full", "tools": []string{"Bash", "AskUserQuestion"}},
				"asker":  map[string]any{"prompt": "Ask.", "profile": "ask-writes", "tools": []string{"Read", "Write"}},
				"short":  map[string]any{"prompt": "Be short.", "profile": "full", "tools": []string{"Bash"}, "max-steps": 1},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func needSandbox(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "" {
		t.Skip("bwrap is missing; install it with: apt-get install bubblewrap")
	}
	dir, err := os.MkdirTemp("", "fairlead-aisdk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serve runs the services until the test ends.
func serve(t *testing.T, mode string) *server {
	t.Helper()
	s := &server{dir: needSandbox(t), client: &http.Client{Transport: &http.Transport{}}, keys: map[string]string{}}
	h, err := open(t.Context(), s.dir, settings(t, mode), "127.0.0.1:0", slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
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
	if mode == "required" {
		people := sessionv1.NewIdentityServiceClient(h.Peers)
		if _, err := people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{}); err != nil { // the first one is the administrator's
			t.Fatal(err)
		}
		for user, role := range map[string]commonv1.Role{"ann": commonv1.Role_ROLE_USER, "bob": commonv1.Role_ROLE_USER, "operator": commonv1.Role_ROLE_OPERATOR, "viewer": commonv1.Role_ROLE_VIEWER} {
			s.user(t, people, user, role)
		}
	}
	return s
}

// user makes a user and an API key.
func (s *server) user(t *testing.T, people sessionv1.IdentityServiceClient, id string, role commonv1.Role) {
	t.Helper()
	made, err := people.CreateUser(t.Context(), &sessionv1.CreateUserRequest{UserId: id, User: &sessionv1.User{Role: role}})
	if err != nil {
		t.Fatal(err)
	}
	key, err := people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{User: made.User.Name}})
	if err != nil {
		t.Fatal(err)
	}
	s.keys[id] = key.Secret
}

// spawn runs the services in a process of their own, which a test may kill and start again.
func spawn(t *testing.T) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s := &server{dir: needSandbox(t), client: &http.Client{Transport: &http.Transport{}}, url: "http://" + address, config: settings(t, "open")}
	t.Cleanup(func() { s.client.CloseIdleConnections(); s.kill() })
	s.start(t)
	return s
}

// start starts the process, and waits until it listens.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(os.Args[0]) // kill ends it
	s.cmd.Env = append(os.Environ(), child+"="+s.dir+" "+s.config+" "+strings.TrimPrefix(s.url, "http://"))
	var log strings.Builder
	s.cmd.Stderr = &log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = s.cmd.Wait()
		t.Fatalf("the server: %v\n%s", err, log.String())
	}
}

// kill kills the process.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// do makes a request; header has names and values in turn.
func (s *server) do(ctx context.Context, t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// call makes a request and reads the whole answer.
func (s *server) call(t *testing.T, method, path, body string, header ...string) (code int, text string) {
	t.Helper()
	resp := s.do(t.Context(), t, method, path, body, header...)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v after %s", method, path, err, b)
	}
	return resp.StatusCode, string(b)
}
