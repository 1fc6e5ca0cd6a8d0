package integration

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox"
)

// crashContainers has this test binary be a service that runs a command in a container, and
// waits to be killed.
const crashContainers = "FAIRLEAD_TEST_CRASH_CONTAINERS"

// crashParent is the control group of these services.
const crashParent = "fairlead-crash-containers"

func containersIn(t *testing.T, dir string) sandbox.Config {
	cfg := configuration(t, sandbox.LevelFull)
	cfg.Data, cfg.CgroupParent = filepath.Join(dir, "data"), crashParent
	cfg.Driver, cfg.OCI.Runtime, cfg.OCI.State = sandbox.DriverOCI, "runc", filepath.Join(dir, "state")
	return cfg
}

// TestRunContainerUntilKilled is the service that the tests below kill.
func TestRunContainerUntilKilled(t *testing.T) {
	dir := os.Getenv(crashContainers)
	if dir == "" {
		t.Skip("runs in a process of its own")
	}
	c := start(t, containersIn(t, dir))
	c.ensure(t.Context(), t)
	stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.named("victim"), Argv: []string{"bash", "-c", "echo ready; sleep 98766"}})
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("\nREADY\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// crashed is a folder of a service whose command ran in a container when it was killed, whose data lies behind a link, and how
// what it made on the machine is called. before is called just before, with that.
func crashed(t *testing.T, before func(name string)) (dir, name string) {
	t.Helper()
	prove.Only(t, "containers are not the default driver")
	if _, err := exec.LookPath("runc"); err != nil || os.Getuid() != 0 {
		t.Skip("it needs root, and runc")
	}
	dir, err := os.MkdirTemp("/tmp", "fairlead-crash-") // which every user may pass through
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o711), os.Mkdir(filepath.Join(dir, "real"), 0o755), os.Symlink("real", filepath.Join(dir, "data"))); err != nil {
		t.Fatal(err)
	}
	kill := child(t, "TestRunContainerUntilKilled", crashContainers+"="+dir)
	made, err := os.ReadDir(filepath.Join(dir, "state"))
	if err != nil || len(made) != 1 {
		t.Fatalf("the folder of containers has %v, %v", made, err)
	}
	name = made[0].Name()
	before(name)
	kill()
	return dir, name
}

// nothingLeft checks that neither a container's folder nor a control group of one is left.
func nothingLeft(t *testing.T, dir, name string) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Join(dir, "state")); len(left) > 0 {
		t.Errorf("in the folder of containers: %v, %v", left, err)
	}
	var left []string
	countFiles("/sys/fs/cgroup", func(path string, d fs.DirEntry) bool {
		if d.IsDir() && strings.Contains(path, "/"+crashParent+"-oci/"+name) {
			left = append(left, path)
		}
		return false
	})
	if len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
}

// A snapshot stops what runs beside it, and a process that stands still does not die.
func TestACrashWhileASandboxIsFrozenIsNoneForGood(t *testing.T) {
	if _, err := os.Stat("/sys/fs/cgroup/freezer"); err != nil {
		t.Skip("with version 2 it does die")
	}
	dir, name := crashed(t, func(name string) {
		groups, err := filepath.Glob("/sys/fs/cgroup/freezer/" + crashParent + "/" + name + "/*/freezer.state")
		if err != nil || len(groups) == 0 {
			t.Fatalf("no sandbox is there: %v", err)
		}
		for _, g := range groups {
			freeze(t, g)
		}
	})
	cfg := containersIn(t, dir)
	cfg.Data = filepath.Join(dir, "real") // the same folder
	s, err := sandbox.New(t.Context(), cfg, sandbox.Deps{Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, dir, name)
}

// freeze stops a group, and waits until all in it stands still.
func freeze(t *testing.T, state string) {
	t.Helper()
	t.Cleanup(func() { _ = os.WriteFile(state, []byte("THAWED"), 0o600) }) // if it is there still
	look, patience := time.NewTicker(5*time.Millisecond), time.NewTimer(10*time.Second)
	defer look.Stop()
	defer patience.Stop()
	for {
		if err := os.WriteFile(state, []byte("FROZEN"), 0o600); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(state); err == nil && strings.TrimSpace(string(now)) == "FROZEN" {
			return
		}
		select {
		case <-look.C:
		case <-patience.C:
			t.Fatal("it does not stand still")
		}
	}
}

// Who goes back to the default driver after a crash keeps nothing of the one before.
func TestAnotherDriverRemovesTheContainersThatACrashLeft(t *testing.T) {
	dir, name := crashed(t, func(string) {})
	cfg := containersIn(t, dir)
	cfg.Driver = sandbox.DriverBubblewrap
	start(t, cfg)
	nothingLeft(t, dir, name)
}
