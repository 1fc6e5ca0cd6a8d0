package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/kubernetes/apitest"
)

// pods has a service use a cluster of the test's own, on whose volume its data are.
func pods(t *testing.T) (*apitest.Server, func(*sandbox.Config)) {
	t.Helper()
	if _, err := exec.LookPath("runc"); os.Getuid() != 0 || err != nil && os.Getenv("CI") == "" {
		t.Skip("it needs root and runc")
	}
	volume := t.TempDir()
	s := apitest.New(t, apitest.Options{Volume: volume})
	return s, func(c *sandbox.Config) {
		c.Driver, c.Level, c.Data, c.SpareSandboxes = sandbox.DriverKubernetes, sandbox.LevelAuto, filepath.Join(volume, "sandbox"), 0
		k := &c.Kubernetes
		k.Kubeconfig, k.Namespace, k.Node, k.Claim, k.ClaimPath = s.Kubeconfig(t.TempDir()), apitest.Namespace, apitest.Node, apitest.Claim, "sandbox"
		k.Image, k.Path, k.StartTimeout = "registry.example/tools:1", s.Path(), 20*time.Second
	}
}

// everywhere runs a test at every level that the user may have, and in pods.
func everywhere(t *testing.T, test func(t *testing.T, level string, change func(*sandbox.Config))) {
	eachLevel(t, func(t *testing.T, level string) { test(t, level, func(*sandbox.Config) {}) })
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

// TestAttacksOnTheNetworkOfPods makes those of the attacks that are about networks in
// pods, without a way out and with one. The pods are as the tests' cluster isolates
// them: what this shows is that what carries the way out opens nothing else.
func TestAttacksOnTheNetworkOfPods(t *testing.T) {
	needCurl(t)
	for name, x := range map[string]struct {
		rules []*sandboxv1.NetworkRule
		want  string // of who asks for metadata by the way out
	}{
		"without a network": {nil, "Failed to connect"}, "with a network": {[]*sandboxv1.NetworkRule{{Host: "*.example.com"}}, "not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, change := pods(t)
			d := driver{name: sandbox.DriverKubernetes, level: sandbox.LevelPod, open: func(c *sandbox.Config) { change(c); ceiling()(c) }}
			s := newScene(t, d)
			for _, c := range []*client{s.client, s.neighbor} {
				if err := c.network(t, x.rules...); err != nil {
					t.Fatal(err)
				}
			}
			var b table
			for _, a := range networkAttacks {
				t.Run(a.name, func(t *testing.T) { s.judge(t, &b, category{name: "network"}, a) })
			}
			if r := s.bash(t, "curl -sS --noproxy '' -x http://127.0.0.1:3128 -m 10 http://169.254.169.254/latest/ 2>&1"); !strings.Contains(r.out, x.want) {
				t.Errorf("metadata by the way out: %q", r.out)
			}
		})
	}
}
