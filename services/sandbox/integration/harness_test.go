// Package integration tests the sandbox service as its peers see it: by its RPCs, on real drivers, also when it is
// attacked, crashes or runs full.
package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("FAIRLEAD_TEST_SECRET", hostSecret) // no command is to see it
	prove.SideBySide(8)                               // they wait for commands and limits
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeBuilt()
		os.Exit(code)
	}))
}

// atLevel runs a test at the user's level: full as root, basic as another user, as in
// TestAsAPlainUser. eachDriver also runs root at level basic.
func atLevel(t *testing.T, test func(t *testing.T, level string)) {
	level := sandbox.LevelBasic
	if os.Getuid() == 0 {
		level = sandbox.LevelFull
	}
	t.Run(level, func(t *testing.T) { test(t, level) })
}

// services counts those that tests have configured.
var services atomic.Int64

func configuration(t *testing.T, level string) sandbox.Config {
	c := sandbox.Defaults()
	c.Level, c.Data, c.Node = level, filepath.Join(t.TempDir(), "data"), "here"
	// Users of this service's own: the kernel counts processes by user, also those of another run.
	c.CgroupParent, c.UIDBase, c.UIDCount = "fairlead-test", 100_000_000+os.Getpid()*50_000+int(services.Add(1))%250*200, 100
	c.Limits.Tmp, c.Limits.Shm = 1<<20, 1<<20
	c.Limits.Timeout = 30 * time.Second
	return c
}

// standardFolders is what ls tells of a new workspace.
const standardFolders = "artifacts\nmnt\nrepos\nuploads\nworkflows\n"

// client calls a service over the wire.
type client struct {
	execs      sandboxv1.ExecServiceClient
	files      sandboxv1.FileServiceClient
	workspaces sandboxv1.WorkspaceServiceClient
	snapshots  sandboxv1.SnapshotServiceClient
	repos      sandboxv1.RepositoryServiceClient
	session    string
	epoch      int64
	calls      *atomic.Int64
	stop       func()
}

// start starts a service without a workspace. It stops with the test, or when stop
// is called.
func start(t *testing.T, c sandbox.Config) *client {
	t.Helper()
	if c.Driver == inPods {
		return startPods(t, c)
	}
	return startWith(t, c, sandbox.Deps{Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
}

func startWith(t *testing.T, c sandbox.Config, d sandbox.Deps) *client {
	t.Helper()
	s, err := sandbox.New(t.Context(), c, d)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	stop := func() {
		if closed {
			return
		}
		closed = true
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop) // runs after the connection is gone, which is made later
	return newClient(rpctest.Dial(t, s.RegisterPeer), stop)
}

func newClient(conn *grpc.ClientConn, stop func()) *client {
	return &client{
		execs: sandboxv1.NewExecServiceClient(conn), files: sandboxv1.NewFileServiceClient(conn),
		workspaces: sandboxv1.NewWorkspaceServiceClient(conn), snapshots: sandboxv1.NewSnapshotServiceClient(conn), repos: sandboxv1.NewRepositoryServiceClient(conn), session: "sessions/one", epoch: 1, calls: &atomic.Int64{}, stop: stop,
	}
}

// open starts a service with a workspace.
func open(t *testing.T, level string, change ...func(*sandbox.Config)) *client {
	t.Helper()
	cfg := configuration(t, level)
	for _, f := range change {
		f(&cfg)
	}
	c := start(t, cfg)
	c.ensure(t.Context(), t)
	return c
}

func (c *client) ensure(ctx context.Context, t *testing.T) *sandboxv1.EnsureWorkspaceResponse {
	t.Helper()
	r, err := c.workspaces.EnsureWorkspace(ctx, &sandboxv1.EnsureWorkspaceRequest{Call: c.call()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (c *client) call() *commonv1.CallRef { return c.named(fmt.Sprintf("call.%d", c.calls.Add(1))) }

func (c *client) named(id string) *commonv1.CallRef {
	return &commonv1.CallRef{Session: c.session, Epoch: c.epoch, CallId: id}
}

// result is a command that has ended.
type result struct {
	out, err string
	attached bool
	*sandboxv1.ExecExited
}

// bash runs a script to its end.
func (c *client) bash(t *testing.T, script string) result {
	t.Helper()
	r, err := c.exec(t.Context(), script, nil)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return r
}

func (c *client) exec(ctx context.Context, script string, change func(*sandboxv1.ExecStart)) (result, error) {
	s := &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", script}}
	if change != nil {
		change(s)
	}
	stream, err := c.execs.Exec(ctx)
	if err != nil {
		return result{}, err
	}
	if err := stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: s}}); err != nil && !errors.Is(err, io.EOF) {
		return result{}, err
	}
	return follow(stream)
}

// follow reads a command's answers to the end.
func follow(stream sandboxv1.ExecService_ExecClient) (result, error) {
	var r result
	for {
		m, err := stream.Recv()
		if err != nil {
			return r, err
		}
		switch k := m.GetKind().(type) {
		case *sandboxv1.ExecResponse_Started:
			r.attached = k.Started.GetAttached()
		case *sandboxv1.ExecResponse_Stdout:
			r.out += string(k.Stdout.GetData())
		case *sandboxv1.ExecResponse_Stderr:
			r.err += string(k.Stderr.GetData())
		case *sandboxv1.ExecResponse_Exited:
			r.ExecExited = k.Exited
			return r, nil
		}
	}
}

func (c *client) write(t *testing.T, name, content string, change func(*sandboxv1.WriteFileStart)) (*sandboxv1.WriteFileResponse, error) {
	t.Helper()
	stream, err := c.files.WriteFile(t.Context())
	if err != nil {
		return nil, err
	}
	s := &sandboxv1.WriteFileStart{Call: c.call(), Path: name}
	if change != nil {
		change(s)
	}
	err = stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Start{Start: s}})
	for rest := content; err == nil && rest != ""; {
		n := min(len(rest), 1<<20)
		err = stream.Send(&sandboxv1.WriteFileRequest{Kind: &sandboxv1.WriteFileRequest_Data{Data: []byte(rest[:n])}})
		rest = rest[n:]
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.CloseAndRecv()
}

func (c *client) read(t *testing.T, name string) (string, error) {
	t.Helper()
	stream, err := c.files.ReadFile(t.Context(), &sandboxv1.ReadFileRequest{Session: c.session, Path: name})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		b.Write(m.GetData())
	}
}

func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	if got := apierr.Reason(err); got != reason {
		t.Errorf("error %v with reason %q, want %q", err, got, reason)
	}
}

func seconds(n float64) *durationpb.Duration {
	return durationpb.New(time.Duration(n * float64(time.Second)))
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
