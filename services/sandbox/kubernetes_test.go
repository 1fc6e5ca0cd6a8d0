package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/kubernetes/apitest"
)

// pods has a service use a cluster of the test's own, on whose volume its data are.
func pods(t *testing.T) (*apitest.Server, func(*sandbox.Config)) {
	t.Helper()
	return cluster(t, nil)
}

// cluster is pods, with further claims.
func cluster(t *testing.T, claims map[string]string) (*apitest.Server, func(*sandbox.Config)) {
	t.Helper()
	prove.Only(t, "pods are not the default driver")
	if _, err := exec.LookPath("runc"); os.Getuid() != 0 || err != nil && os.Getenv("CI") == "" {
		t.Skip("it needs root and runc")
	}
	volume := t.TempDir()
	s := apitest.New(t, apitest.Options{Volume: volume, Claims: claims})
	return s, func(c *sandbox.Config) {
		c.Driver, c.Level, c.Data, c.SpareSandboxes = sandbox.DriverKubernetes, sandbox.LevelAuto, filepath.Join(volume, "sandbox"), 0
		k := &c.Kubernetes
		k.Kubeconfig, k.Namespace, k.Node, k.Claim, k.ClaimPath = s.Kubeconfig(t.TempDir()), apitest.Namespace, apitest.Node, apitest.Claim, "sandbox"
		k.Image, k.Path, k.StartTimeout = "registry.example/tools:1", s.Path(), 20*time.Second
	}
}

// everywhere runs a test at every level that the user may have, and in pods.
func everywhere(t *testing.T, test func(t *testing.T, level string, change func(*sandbox.Config))) {
	atLevel(t, func(t *testing.T, level string) { test(t, level, func(*sandbox.Config) {}) })
	t.Run(sandbox.LevelPod, func(t *testing.T) {
		_, change := pods(t)
		test(t, sandbox.LevelPod, change)
	})
}

func TestPodsAreSandboxes(t *testing.T) {
	s, change := pods(t)
	c := open(t, sandbox.LevelAuto, change)
	got, err := c.workspaces.GetCapabilities(t.Context(), &sandboxv1.GetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetDriver() != "kubernetes" || got.GetLevel() != "pod" || !slices.Contains(got.GetIncludes(), "experimental") || !slices.Contains(got.GetIncludes(), "seccomp") {
		t.Errorf("it says %v", got)
	}
	if _, err := c.write(t, "file", "content", nil); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "cat file; echo more > made; [ $(id -u) -ge 300000 ] && pwd"); r.out != "content/workspace\n" {
		t.Errorf("%q %q %v", r.out, r.err, r.ExecExited)
	}
	if r := c.bash(t, "cat made"); r.out != "more\n" {
		t.Errorf("%q %q %v", r.out, r.err, r.ExecExited)
	}
	for _, p := range s.Pods() {
		if strings.Contains(p.Spec.Containers[0].VolumeMounts[0].SubPath, "..") {
			t.Errorf("its workspace is at %+v", p.Spec.Containers[0].VolumeMounts[0])
		}
	}
	c.stop()
	if left := s.Pods(); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

func TestAClusterThatKeepsNoPoliciesIsRefused(t *testing.T) {
	s, change := pods(t)
	s.Break(apitest.Faults{HostNetwork: true})
	cfg := configuration(t, sandbox.LevelAuto)
	change(&cfg)
	service, err := sandbox.New(t.Context(), cfg, sandbox.Deps{Log: discard()})
	if err == nil {
		_ = service.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "it has a network") || !strings.Contains(err.Error(), "level pod") {
		t.Errorf("%v", err)
	}
	if left := s.Pods(); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// podScene is where pods are attacked.
func podScene(t *testing.T, change ...func(*sandbox.Config)) *scene {
	t.Helper()
	return newScene(t, podDriver(t, change...))
}

// podDriver is the driver for a service, with a cluster of its own.
func podDriver(t *testing.T, change ...func(*sandbox.Config)) driver {
	t.Helper()
	_, on := pods(t)
	return driver{
		name: inPods, level: sandbox.LevelPod, again: func(t *testing.T) driver { t.Helper(); return podDriver(t, change...) },
		open: func(c *sandbox.Config) {
			on(c)
			for _, f := range change {
				f(c)
			}
		},
	}
}

// TestAttacksOnPods makes every attack in pods. They are as the tests' cluster isolates them: what this
// shows is what the driver and init make of that, and that they open nothing.
func TestAttacksOnPods(t *testing.T) {
	t.Parallel() // as TestAttacks is
	var b table
	s := podScene(t)
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) {
			for _, a := range c.attacks {
				t.Run(a.name, func(t *testing.T) { s.judge(t, &b, c, a) })
			}
		})
	}
	b.write(t)
}

// TestAttacksOnTheWayOutOfPods makes those about networks where there is a way out: what
// carries it opens nothing else.
func TestAttacksOnTheWayOutOfPods(t *testing.T) {
	needCurl(t)
	s := podScene(t, ceiling())
	for _, c := range []*client{s.client, s.neighbor} {
		if err := c.network(t, &sandboxv1.NetworkRule{Host: "*.example.com"}); err != nil {
			t.Fatal(err)
		}
	}
	var b table
	for _, a := range networkAttacks {
		t.Run(a.name, func(t *testing.T) { s.judge(t, &b, category{name: "network"}, a) })
	}
	if r := s.bash(t, "curl -sS --noproxy '' -x http://127.0.0.1:3128 -m 10 http://169.254.169.254/latest/ 2>&1"); !strings.Contains(r.out, "not allowed") {
		t.Errorf("metadata by the way out: %q", r.out)
	}
}

// shelved has a service's pod have a second claim, with folders to show.
func shelved(t *testing.T, names ...string) (dir string, change func(*sandbox.Config)) {
	t.Helper()
	dir = sources(t, names...)
	_, on := cluster(t, map[string]string{"shelf": dir})
	return dir, func(c *sandbox.Config) {
		on(c)
		c.Kubernetes.Volumes = []sandbox.Volume{{Claim: "shelf", Path: dir}}
	}
}

func TestPodsShowMountsOfOtherClaims(t *testing.T) {
	dir, change := shelved(t, "books", "asked", "flows")
	c := open(t, sandbox.LevelAuto, change, func(c *sandbox.Config) {
		c.Workflows = dir + "/flows"
		c.Mounts = []mount.Rule{
			{Name: "books", Source: dir + "/books", Alias: "mnt/books"}, {Name: "asked", Source: dir + "/asked", Alias: "asked", OnRequest: true},
		}
	})
	r := c.bash(t, "cat mnt/books/file workflows/file; ls; touch mnt/books/x; touch mnt/x; touch workflows/x; mv mnt other; mv workflows other; ls asked")
	if want := "books\nflows\n" + standardFolders; r.out != want {
		t.Errorf("got %q, want %q; %s", r.out, want, r.err)
	}
	for _, want := range []string{"'mnt/books/x': Read-only file system", "'mnt/x': Read-only file system", "'workflows/x': Read-only file system", "cannot move 'mnt'", "cannot move 'workflows'", "'asked': No such file"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is not in %s", want, r.err)
		}
	}
	if got, err := c.read(t, "mnt/books/file"); err != nil || got != "books\n" {
		t.Errorf("by the file API: %q, %v", got, err)
	}
	if _, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Mounts: &sandboxv1.WorkspaceMounts{Names: []string{"asked"}}}); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "cat asked/file"); r.out != "asked\n" {
		t.Errorf("got %q, %s", r.out, r.err)
	}
}

// Terminals are the node's: nothing refuses them, but who has too many is ended.
func TestACommandInAPodThatHasTooManyTerminalsIsEnded(t *testing.T) {
	_, change := pods(t)
	c := open(t, sandbox.LevelAuto, change)
	const take = "import os, time\nkept = [os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY) for _ in range(%d)]\ntime.sleep(%d)"
	r := c.bash(t, fmt.Sprintf("python3 -c \"%s\"", fmt.Sprintf(take, 100, 20)))
	if hits := r.GetLimitsHit(); r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_TERMINAL_LIMIT || len(hits) != 1 || hits[0].GetLimit() != "terminals" || !strings.Contains(r.GetMessage(), "100 pseudo-terminals") {
		t.Errorf("%v %v", r.ExecExited, r.err)
	}
	if r := c.bash(t, fmt.Sprintf("python3 -c \"%s\"; echo done", fmt.Sprintf(take, 60, 1))); r.out != "done\n" || r.err != "" {
		t.Errorf("%v %v", r.ExecExited, r.err)
	}
}

func TestCommandsInPodsCannotChangeWorkflows(t *testing.T) {
	_, change := pods(t)
	c := open(t, sandbox.LevelAuto, change)
	if r := c.bash(t, "touch workflows/x; mv workflows other; rmdir workflows; ls -A workflows; ls"); r.out != standardFolders {
		t.Errorf("got %q, %s", r.out, r.err)
	}
}

func TestWhatPodsCannotShowIsToldAtTheStart(t *testing.T) {
	dir, change := shelved(t, "shared")
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
		"a volume without a claim":           {func(c *sandbox.Config) { c.Kubernetes.Volumes[0].Claim = "" }, "each needs a claim"},
		"a volume that leads out of a claim": {func(c *sandbox.Config) { c.Kubernetes.Volumes[0].ClaimPath = "../x" }, "does not lead into the claim"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configuration(t, sandbox.LevelAuto)
			change(&cfg)
			tc.change(&cfg)
			service, err := sandbox.New(t.Context(), cfg, sandbox.Deps{Log: discard()})
			if err == nil {
				_ = service.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
