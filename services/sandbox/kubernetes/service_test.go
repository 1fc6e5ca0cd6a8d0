package kubernetes_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes/internal/apitest"
)

// service is a sandbox service whose pods run in a cluster of the test's own, on whose volume its data are.
type service struct {
	sandbox.Config
	driver  kubernetes.Config
	cluster *apitest.Server
}

// newService starts a cluster. The service's data directory is at data on its volume; claims are further claims.
func newService(t *testing.T, volume, data string, claims map[string]string) *service {
	t.Helper()
	s := &service{Config: sandbox.Defaults(), driver: kubernetes.Defaults(), cluster: apitest.New(t, apitest.Options{Volume: volume, Claims: claims})}
	s.Driver, s.Data, s.SpareSandboxes = "", filepath.Join(volume, data), 0
	s.UIDBase, s.UIDCount = 300_000+os.Getpid()%900*100, 100
	d := &s.driver
	d.Kubeconfig, d.Namespace, d.Node, d.Claim, d.ClaimPath = s.cluster.Kubeconfig(t.TempDir()), apitest.Namespace, apitest.Node, apitest.Claim, data
	d.Image, d.Path, d.StartTimeout = "registry.example/tools:1", s.cluster.Path(), 20*time.Second
	return s
}

func (s *service) new(ctx context.Context, log *slog.Logger) (*sandbox.Service, error) {
	return sandbox.New(ctx, s.Config, sandbox.Deps{Log: log, Driver: s.driver.Driver()})
}

// open serves it until the test ends.
func (s *service) open(t *testing.T) *client {
	t.Helper()
	running, err := s.new(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
		if left := s.cluster.Pods(); len(left) > 0 {
			t.Errorf("%d pods are left", len(left))
		}
	})
	c := &client{conn: rpctest.Dial(t, running.RegisterPeer)}
	c.ensure(t)
	return c
}

// wantRefused has the service not start, and leave no pods.
func (s *service) wantRefused(t *testing.T, wants ...string) {
	t.Helper()
	running, err := s.new(t.Context(), slog.New(slog.DiscardHandler))
	if err == nil {
		err = running.Close()
		t.Error("it started")
	}
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q: %v", want, err)
		}
	}
	if left := s.cluster.Pods(); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// client calls a service over the wire, in one session.
type client struct {
	conn  *grpc.ClientConn
	calls int
}

func (c *client) call() *commonv1.CallRef {
	c.calls++
	return &commonv1.CallRef{Session: "sessions/one", Epoch: 1, CallId: fmt.Sprintf("call.%d", c.calls)}
}

// ensure makes the workspace, with mounts on request.
func (c *client) ensure(t *testing.T, mounts ...string) {
	t.Helper()
	asked := &sandboxv1.WorkspaceMounts{}
	for _, name := range mounts {
		asked.Mounts = append(asked.Mounts, &commonv1.Mount{Name: name})
	}
	_, err := sandboxv1.NewWorkspaceServiceClient(c.conn).EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Mounts: asked})
	if err != nil {
		t.Fatal(err)
	}
}

// bash runs a script to its end, and returns what it wrote.
func (c *client) bash(t *testing.T, script string) (stdout, stderr string, exited *sandboxv1.ExecExited) {
	t.Helper()
	stream, err := sandboxv1.NewExecServiceClient(c.conn).Exec(t.Context())
	if err == nil {
		err = stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", script}}}})
	}
	var out, problems strings.Builder
	for err == nil && exited == nil {
		var m *sandboxv1.ExecResponse
		m, err = stream.Recv()
		out.Write(m.GetStdout().GetData())
		problems.Write(m.GetStderr().GetData())
		exited = m.GetExited()
	}
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out.String(), problems.String(), exited
}

// wantFile checks a file through the file API.
func (c *client) wantFile(t *testing.T, name, want string) {
	t.Helper()
	stream, err := sandboxv1.NewFileServiceClient(c.conn).ReadFile(t.Context(), &sandboxv1.ReadFileRequest{Session: "sessions/one", Path: name})
	var got strings.Builder
	for err == nil {
		var m *sandboxv1.ReadFileResponse
		m, err = stream.Recv()
		got.Write(m.GetData())
	}
	if got.String() != want || !errors.Is(err, io.EOF) {
		t.Errorf("%s holds %q, %v", name, got.String(), err)
	}
}

// TestServe is no test: the tests of the sandbox service run it in a process of its own, to run what they test in
// pods. It reads the configuration, and serves until its input ends.
func TestServe(t *testing.T) {
	if os.Getenv("FAIRLEAD_TEST_SERVE") == "" {
		t.Skip("the tests of the sandbox service run it")
	}
	var c sandbox.Config
	if err := gob.NewDecoder(os.Stdin).Decode(&c); err != nil {
		t.Fatal(err)
	}
	claims := map[string]string{} // of what is mounted
	for _, m := range c.Mounts {
		claims[m.Name] = m.Source
	}
	s := newService(t, filepath.Dir(c.Data), filepath.Base(c.Data), claims)
	s.Config = c
	for name, path := range claims {
		s.driver.Volumes = append(s.driver.Volumes, kubernetes.Volume{Claim: name, Path: path})
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	running, err := s.new(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := internaltoken.New(make([]byte, internaltoken.SeedSize)) // the caller has the same
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewPeerServer(log, keys)
	running.RegisterPeer(server)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Printf("serving at %s\n", l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	server.Stop()
	if err := errors.Join(err, <-served, running.Close()); err != nil {
		t.Error(err)
	}
	if left := s.cluster.Pods(); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

func TestPodsAreSandboxes(t *testing.T) {
	needKubelet(t)
	s := newService(t, t.TempDir(), "sandbox", nil)
	c := s.open(t)
	got, err := sandboxv1.NewWorkspaceServiceClient(c.conn).GetCapabilities(t.Context(), &sandboxv1.GetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetDriver() != "kubernetes" || got.GetLevel() != "pod" || !slices.Contains(got.GetIncludes(), "experimental") || !slices.Contains(got.GetIncludes(), "seccomp") {
		t.Errorf("it says %v", got)
	}
	if out, problem, _ := c.bash(t, "echo more > made; [ $(id -u) -ge 300000 ] && pwd"); out != "/workspace\n" {
		t.Errorf("%q %q", out, problem)
	}
	c.wantFile(t, "made", "more\n")
	if out, problem, _ := c.bash(t, "cat made"); out != "more\n" {
		t.Errorf("%q %q", out, problem)
	}
	for _, p := range s.cluster.Pods() {
		if strings.Contains(p.Spec.Containers[0].VolumeMounts[0].SubPath, "..") {
			t.Errorf("its workspace is at %+v", p.Spec.Containers[0].VolumeMounts[0])
		}
	}
}

func TestAClusterThatKeepsNoPoliciesIsRefused(t *testing.T) {
	needKubelet(t)
	s := newService(t, t.TempDir(), "sandbox", nil)
	s.cluster.Break(apitest.Faults{HostNetwork: true})
	s.wantRefused(t, "it has a network", "level pod")
}

// standardFolders is what ls tells of a new workspace.
const standardFolders = "artifacts\nmnt\nrepos\nuploads\nworkflows\n"

// shelved is a service whose pod has a second claim, with folders to show. Each holds a file with its name.
func shelved(t *testing.T, names ...string) (dir string, s *service) {
	t.Helper()
	dir = shelf(t)
	for _, name := range names {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "file"), []byte(name+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s = newService(t, t.TempDir(), "sandbox", map[string]string{"shelf": dir})
	s.driver.Volumes = []kubernetes.Volume{{Claim: "shelf", Path: dir}}
	return dir, s
}

func TestPodsShowMountsOfOtherClaims(t *testing.T) {
	needKubelet(t)
	dir, s := shelved(t, "books", "asked", "flows")
	s.Workflows = dir + "/flows"
	s.Mounts = []mount.Rule{
		{Name: "books", Source: dir + "/books", Alias: "mnt/books"}, {Name: "asked", Source: dir + "/asked", Alias: "asked", OnRequest: true},
	}
	c := s.open(t)
	out, problems, _ := c.bash(t, "cat mnt/books/file workflows/file; ls; touch mnt/books/x; touch mnt/x; touch workflows/x; mv mnt other; mv workflows other; ls asked")
	if want := "books\nflows\n" + standardFolders; out != want {
		t.Errorf("got %q, want %q; %s", out, want, problems)
	}
	for _, want := range []string{"'mnt/books/x': Read-only file system", "'mnt/x': Read-only file system", "'workflows/x': Read-only file system", "cannot move 'mnt'", "cannot move 'workflows'", "'asked': No such file"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is not in %s", want, problems)
		}
	}
	c.wantFile(t, "mnt/books/file", "books\n")
	c.ensure(t, "asked")
	if out, problem, _ := c.bash(t, "cat asked/file"); out != "asked\n" {
		t.Errorf("got %q, %s", out, problem)
	}
}

// Terminals are the node's: nothing refuses them, but a command with too many is ended.
func TestACommandInAPodThatHasTooManyTerminalsIsEnded(t *testing.T) {
	needKubelet(t)
	c := newService(t, t.TempDir(), "sandbox", nil).open(t)
	const take = "import os, time\nkept = [os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY) for _ in range(%d)]\ntime.sleep(%d)"
	_, problem, exited := c.bash(t, fmt.Sprintf("python3 -c \"%s\"", fmt.Sprintf(take, 100, 20)))
	if hits := exited.GetLimitsHit(); exited.GetReason() != sandboxv1.ExitReason_EXIT_REASON_TERMINAL_LIMIT || len(hits) != 1 || hits[0].GetLimit() != "terminals" || !strings.Contains(exited.GetMessage(), "64 pseudo-terminals") {
		t.Errorf("%v %v", exited, problem)
	}
	if out, problem, exited := c.bash(t, fmt.Sprintf("python3 -c \"%s\"; echo done", fmt.Sprintf(take, 60, 1))); out != "done\n" || problem != "" {
		t.Errorf("%v %v", exited, problem)
	}
}

func TestCommandsInPodsCannotChangeWorkflows(t *testing.T) {
	needKubelet(t)
	c := newService(t, t.TempDir(), "sandbox", nil).open(t)
	if out, problem, _ := c.bash(t, "touch workflows/x; mv workflows other; rmdir workflows; ls -A workflows; ls"); out != standardFolders {
		t.Errorf("got %q, %s", out, problem)
	}
}

func TestWhatPodsCannotShowIsToldAtTheStart(t *testing.T) {
	needKubelet(t)
	dir, s := shelved(t, "shared")
	for name, tc := range map[string]struct {
		change func(*sandbox.Config)
		want   string
	}{
		"a folder of the service's machine": {func(c *sandbox.Config) {
			c.Mounts = []mount.Rule{{Name: "books", Source: "/opt", Alias: "books"}}
		}, "mount books: /opt is not on a volume"},
		"workflows of the service's machine": {func(c *sandbox.Config) { c.Workflows = "/opt/{tenant}" }, "workflows: /opt/{tenant} is not on a volume"},
		"a writable mount of another user's": {func(c *sandbox.Config) {
			c.Mounts = []mount.Rule{{Name: "shared", Source: dir + "/shared", Alias: "shared", Mode: "rw"}}
		}, `mount "shared": this driver cannot have several users' commands write`},
		"storage of several users": {func(c *sandbox.Config) {
			c.Storage = sandbox.Storage{Alias: "storage", Bytes: 1 << 20, Inodes: 10}
		}, "storage: this driver cannot have several users' commands write"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := *s
			tc.change(&changed.Config)
			changed.wantRefused(t, tc.want)
		})
	}
}
