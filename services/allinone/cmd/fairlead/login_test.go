package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/endpoint"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// door is a server that knows callers by their bearer credentials.
type door struct {
	sessionv1.UnimplementedIdentityServiceServer
	sessionv1.UnimplementedSessionServiceServer
	users map[string]string // by credential

	mu   sync.Mutex
	seen []string
}

func (d *door) caller(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sent := strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ",")
	d.seen = append(d.seen, sent)
	if user, ok := d.users[strings.TrimPrefix(sent, "Bearer ")]; ok {
		return user, nil
	}
	return "", apierr.Of(codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_KEY_REFUSED, "The key is not valid.")
}

func (d *door) GetCurrentUser(ctx context.Context, _ *sessionv1.GetCurrentUserRequest) (*sessionv1.GetCurrentUserResponse, error) {
	user, err := d.caller(ctx)
	return &sessionv1.GetCurrentUserResponse{Tenant: "tenants/acme", User: "users/" + user, Role: commonv1.Role_ROLE_USER}, err
}

func (d *door) ListSessions(ctx context.Context, _ *sessionv1.ListSessionsRequest) (*sessionv1.ListSessionsResponse, error) {
	_, err := d.caller(ctx)
	return &sessionv1.ListSessionsResponse{}, err
}

func (d *door) ListKeys(ctx context.Context, _ *sessionv1.ListKeysRequest) (*sessionv1.ListKeysResponse, error) {
	_, err := d.caller(ctx)
	return &sessionv1.ListKeysResponse{}, err
}

// CreateKey answers as an open server does.
func (d *door) CreateKey(context.Context, *sessionv1.CreateKeyRequest) (*sessionv1.CreateKeyResponse, error) {
	return nil, apierr.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FIRST_KEY, "This server is open.")
}

// open serves the door until the test ends and returns its address.
func (d *door) open(t *testing.T, o ...grpc.ServerOption) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(o...)
	sessionv1.RegisterIdentityServiceServer(server, d)
	sessionv1.RegisterSessionServiceServer(server, d)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestACredentialIsKeptAndSent(t *testing.T) {
	t.Parallel()
	d := &door{users: map[string]string{"fl_ann": "ann", "fl_bob": "bob"}}
	server := d.open(t)
	env := map[string]string{"XDG_CONFIG_HOME": t.TempDir()}
	path := filepath.Join(env["XDG_CONFIG_HOME"], "fairlead", "credentials.json")
	command := func(in string, args ...string) result {
		t.Helper()
		out, errs, code := fairlead(t.Context(), in, env, append(args, "--server", server)...)
		return result{code, out, errs}
	}
	if got := command("", "sessions", "list"); got.code != 1 || !strings.Contains(got.err, "fairlead login --server "+server) {
		t.Errorf("without a credential: %+v", got)
	}
	for name, key := range map[string]string{"a word": "hello", "nothing": "", "two keys": "fl_a fl_b"} {
		if got := command(key, "login", "--key"); got.code != 2 || !strings.Contains(got.err, "fl_") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := command("fl_none\n", "login", "--key"); got.code != 1 || strings.Contains(got.err+got.out, "fl_none") {
		t.Errorf("a key that the server refuses: %+v", got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a refused key was kept")
	}
	if got := command("fl_ann\n", "login", "--key"); got.code != 0 || !strings.Contains(got.out, "users/ann of tenants/acme") || strings.Contains(got.out+got.err, "fl_ann") {
		t.Fatalf("login: %+v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	if got := command("", "sessions", "list"); got.code != 0 {
		t.Errorf("logged in: %+v", got)
	}
	if got := command("", "whoami"); !strings.Contains(got.out, "ann") || !strings.Contains(got.out, "user") {
		t.Errorf("whoami: %+v", got)
	}
	env[endpoint.KeyVariable] = "fl_bob"
	if got := command("", "whoami", "--json"); !strings.Contains(got.out, `"user":"users/bob"`) {
		t.Errorf("the variable does not win: %+v", got)
	}
	env[endpoint.KeyVariable] = "fl_old"
	if got := command("", "whoami"); got.code != 1 || !strings.Contains(got.err, endpoint.KeyVariable+", which wins") || strings.Contains(got.err, "fairlead login --server") {
		t.Errorf("a refused key of the variable: %+v", got)
	}
	if got := command("fl_ann\n", "login", "--key"); got.code != 0 || !strings.Contains(got.err, "WARNING: "+endpoint.KeyVariable) {
		t.Errorf("a login that the variable hides: %+v", got)
	}
	delete(env, endpoint.KeyVariable)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if got := command("", "whoami"); got.code != 1 || !strings.Contains(got.err, "chmod 600 "+path) {
		t.Errorf("a file that others can read: %+v", got)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, code := fairlead(t.Context(), "", env, "logout", "--server", "127.0.0.1:1"); code != 0 || !strings.Contains(out, "no credential") {
		t.Errorf("logout of another server: %s", out)
	}
	if got := command("", "logout"); got.code != 0 {
		t.Errorf("logout: %+v", got)
	}
	if got := command("", "whoami"); got.code != 1 {
		t.Errorf("logged out: %+v", got)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := d.seen[len(d.seen)-1]; last != "" {
		t.Errorf("after logout it sends %q", last)
	}
}
