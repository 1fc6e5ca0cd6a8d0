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
