// Package wiretest runs a server for the tests of one foreign protocol: in the test's process, or in a process of its own
// that a test kills and starts again.
package wiretest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/freeport"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// child is set in a process that is a server for a test to kill: its arguments.
const child = "FAIRLEAD_TEST_SERVER"

// Main runs the tests of a package, or a server that one of them has started.
func Main(m *testing.M) {
	if args := os.Getenv(child); args != "" {
		os.Exit(beServer(strings.Fields(args)))
	}
	// A connection's heartbeat ends by itself, at its next beat.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// beServer runs all services until it is killed: in dir, with a configuration, at addresses of HTTP and gRPC.
func beServer(args []string) int {
	dir, file, address, rpc := args[0], args[1], args[2], args[3]
	h, err := open(context.Background(), dir, file, address, rpc, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err == nil {
		err = h.Run(context.Background(), func(face, at string) {
			if face == "http" { // the last one: it listens for gRPC before
				fmt.Println(at)
			}
		})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func open(ctx context.Context, dir, file, address, rpc string, log *slog.Logger) (*host.Host, error) {
	conf := host.Defaults(dir)
	args := []string{"--config=" + file, "--http=" + address, "--grpc=" + rpc}
	if err := config.Load(&conf, config.Options{Name: "wiretest", Prefix: "FAIRLEAD_", Args: args, Environ: []string{"A=b"}}); err != nil {
		return nil, err
	}
	return host.New(ctx, conf, telemetry.Discard(log), "v1.2.3")
}

// Server is all services.
type Server struct {
	URL    string
	GRPC   string // the address of gRPC
	Client *http.Client
	Keys   map[string]string // by user
	dir    string
	config string
	cmd    *exec.Cmd // of a server to kill
}

// configure writes the server's configuration, with the session service's part and testdata/scenario.yaml.
func configure(t *testing.T, mode string, session map[string]any) string {
	t.Helper()
	scenario, err := filepath.Abs("testdata/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	session["scenario"] = scenario
	text, err := json.Marshal(map[string]any{"auth": map[string]any{"mode": mode}, "session": session}) // JSON is YAML, too
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
	dir, err := os.MkdirTemp("", "fairlead-wire-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Serve runs the services until the test ends. If there are users, each with a role, a caller needs the key of one.
func Serve(t *testing.T, session map[string]any, users map[string]commonv1.Role) *Server {
	t.Helper()
	mode := "open"
	if len(users) > 0 {
		mode = "required"
	}
	s := &Server{dir: needSandbox(t), Client: &http.Client{Transport: &http.Transport{}}, Keys: map[string]string{}}
	h, err := open(t.Context(), s.dir, configure(t, mode, session), "127.0.0.1:0", "127.0.0.1:0", slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	addresses, ended := make(chan [2]string, 2), make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(face, at string) { addresses <- [2]string{face, at} }) }()
	t.Cleanup(func() {
		s.Client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the services: %v", err)
		}
	})
	for s.URL == "" || s.GRPC == "" {
		select {
		case at := <-addresses:
			if at[0] == "http" {
				s.URL = "http://" + at[1]
			} else {
				s.GRPC = at[1]
			}
		case err := <-ended:
			ended <- nil
			t.Fatalf("the services ended: %v", err)
		}
	}
	if len(users) > 0 {
		people := sessionv1.NewIdentityServiceClient(h.Peers)
		if _, err := people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{FirstKey: true}); err != nil { // the first one is the administrator's
			t.Fatal(err)
		}
		for user, role := range users {
			s.user(t, people, user, role)
		}
	}
	return s
}

// user makes a user and an API key.
func (s *Server) user(t *testing.T, people sessionv1.IdentityServiceClient, id string, role commonv1.Role) {
	t.Helper()
	made, err := people.CreateUser(t.Context(), &sessionv1.CreateUserRequest{UserId: id, User: &sessionv1.User{Role: role}})
	if err != nil {
		t.Fatal(err)
	}
	key, err := people.CreateKey(t.Context(), &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{User: made.User.Name}})
	if err != nil {
		t.Fatal(err)
	}
	s.Keys[id] = key.Secret
}

// Spawn runs the services in a process of their own, which a test may kill and start again. It knows no users.
func Spawn(t *testing.T, session map[string]any) *Server {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	rpc, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{GRPC: rpc, dir: needSandbox(t), Client: &http.Client{Transport: &http.Transport{}}, URL: "http://" + address, config: configure(t, "open", session)}
	t.Cleanup(func() { s.Client.CloseIdleConnections(); s.Kill() })
	s.Start(t)
	return s
}

// Start starts the process, and waits until it listens.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(os.Args[0]) //nolint:gosec,noctx // it is this program; Kill ends it
	s.cmd.Env = append(os.Environ(), child+"="+s.dir+" "+s.config+" "+strings.TrimPrefix(s.URL, "http://")+" "+s.GRPC)
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

// Kill kills the process.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Do makes a request; header has names and values in turn.
func (s *Server) Do(ctx context.Context, t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// Call makes a request and reads the whole answer.
func (s *Server) Call(t *testing.T, method, path, body string, header ...string) (code int, text string) {
	t.Helper()
	resp := s.Do(t.Context(), t, method, path, body, header...)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v after %s", method, path, err, b)
	}
	return resp.StatusCode, string(b)
}
