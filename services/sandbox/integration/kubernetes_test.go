package integration

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/sandbox"
)

// inPods is the driver kubernetes, whose pods are containers of runc here. It is a module of its own: its test
// binary serves each service, with a cluster.
const inPods = "kubernetes"

// levelPod is the level of that driver.
const levelPod = "pod"

// pods returns the change of a configuration that makes sandboxes pods of a cluster of the service's own.
func pods(t *testing.T) func(*sandbox.Config) {
	t.Helper()
	prove.Only(t, "pods are not the default driver")
	if _, err := exec.LookPath("runc"); os.Getuid() != 0 || err != nil && os.Getenv("CI") == "" {
		t.Skip("it needs root and runc")
	}
	volume := t.TempDir()
	return func(c *sandbox.Config) {
		c.Driver, c.Level, c.Data, c.SpareSandboxes = inPods, sandbox.LevelAuto, filepath.Join(volume, "sandbox"), 0
	}
}

var buildPodService = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fairlead-pods-")
	if err != nil {
		return "", err
	}
	built.Lock()
	built.folders = append(built.folders, dir)
	built.Unlock()
	path := filepath.Join(dir, "pods")
	args := []string{"test", "-C", "../kubernetes", "-c", "-vet=off", "-ldflags=-w", "-o", path}
	if raceDetector {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of the driver kubernetes: %w\n%s", err, out)
	}
	return path, nil
})

// startPods starts a service with the driver kubernetes in a process of its own.
func startPods(t *testing.T, c sandbox.Config) *client {
	t.Helper()
	path, err := buildPodService()
	if err != nil {
		t.Fatal(err)
	}
	c.Driver = ""
	cmd := exec.Command(path, "-test.run=^TestServe$", "-test.v", "-test.timeout=0")
	cmd.Env, cmd.Stderr = append(os.Environ(), "FAIRLEAD_TEST_SERVE=1"), t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = in.Close()
		rest, _ := io.ReadAll(out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the service with pods: %v\n%s", err, rest)
		}
	})
	t.Cleanup(stop)
	if err := gob.NewEncoder(in).Encode(c); err != nil {
		t.Fatal(err)
	}
	var address string
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		_, address, _ = strings.Cut(lines.Text(), "serving at ")
	}
	if address == "" {
		t.Fatal("the service with pods did not start")
	}
	keys, err := internaltoken.New(make([]byte, internaltoken.SeedSize)) // the service has the same
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(address, rpc.WithKeys(keys), rpc.WithFallback(principal.Service("default", "default")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return newClient(conn, stop)
}

// everywhere runs a test at every level that the user may have, and in pods.
func everywhere(t *testing.T, test func(t *testing.T, level string, change func(*sandbox.Config))) {
	atLevel(t, func(t *testing.T, level string) { test(t, level, func(*sandbox.Config) {}) })
	t.Run(levelPod, func(t *testing.T) { test(t, levelPod, pods(t)) })
}

// podDriver is the driver for a service, with a cluster of its own.
func podDriver(t *testing.T, change ...func(*sandbox.Config)) driver {
	t.Helper()
	on := pods(t)
	return driver{
		name: inPods, level: levelPod, again: func(t *testing.T) driver { t.Helper(); return podDriver(t, change...) },
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
	s := newScene(t, podDriver(t))
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) { s.assault(t, &b, c) })
	}
	b.write(t)
}

// TestAttacksOnTheWayOutOfPods makes those about networks where there is a way out: what
// carries it opens nothing else.
func TestAttacksOnTheWayOutOfPods(t *testing.T) {
	t.Parallel()
	needCurl(t)
	s := newScene(t, podDriver(t, ceiling()))
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
