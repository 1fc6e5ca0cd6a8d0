package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

func TestDriversThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*sandbox.Config)
		want   string
	}{
		"one that there is not":       {func(c *sandbox.Config) { c.Driver = "docker" }, `driver: "docker" is not one of`},
		"none without a further word": {func(c *sandbox.Config) { c.Driver, c.Level = "none", "auto" }, "allow-no-isolation"},
		"none with a level":           {func(c *sandbox.Config) { c.Driver, c.Level, c.NoIsolation = "none", "full", true }, `cannot apply the level "full"`},
		"none with a mount": {func(c *sandbox.Config) {
			c.Driver, c.Level, c.NoIsolation, c.Mounts = "none", "auto", true, []mount.Rule{{Name: "books", Source: "/srv", Alias: "books"}}
		}, "need a driver that isolates"},
		"none with storage": {func(c *sandbox.Config) {
			c.Driver, c.Level, c.NoIsolation, c.Storage = "none", "auto", true, sandbox.Storage{Alias: "storage", Bytes: 1 << 20, Inodes: 10}
		}, "need a driver that isolates"},
		"a place that moves":             {func(c *sandbox.Config) { c.Driver, c.OCI.State = "oci", "here" }, "must be an absolute path"},
		"pods":                           {func(c *sandbox.Config) { c.Driver = "kubernetes" }, "run `sandbox-kubernetes`"},
		"none by no name":                {func(c *sandbox.Config) { c.Driver = "" }, "must be one of bubblewrap, oci, none"},
		"the word without what it is of": {func(c *sandbox.Config) { c.NoIsolation = true }, "remove the key"},
	} {
		t.Run(name, func(t *testing.T) {
			c := configuration(t, sandbox.LevelBasic)
			tc.change(&c)
			s, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: discard()})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestARuntimesSandboxesAreShown(t *testing.T) {
	t.Parallel()
	prove.Only(t, "containers are not the default driver")
	if os.Getuid() != 0 {
		t.Skip("it needs root")
	}
	state, err := os.MkdirTemp("/tmp", "fairlead-oci-")
	if err == nil {
		err = os.Chmod(state, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	for _, runtime := range []string{"runc", "runsc"} {
		for _, level := range []string{sandbox.LevelFull, sandbox.LevelBasic} {
			t.Run(runtime+" "+level, func(t *testing.T) {
				if _, err := exec.LookPath(runtime); err != nil && (runtime != "runc" || os.Getenv("CI") == "") {
					t.Skip("it needs " + runtime)
				}
				c := open(t, level, func(c *sandbox.Config) { c.Driver, c.OCI.State, c.OCI.Runtime = sandbox.DriverOCI, state, runtime })
				got, err := c.workspaces.GetCapabilities(t.Context(), &sandboxv1.GetCapabilitiesRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if got.GetDriver() != "oci" || got.GetLevel() != level || !slices.Contains(got.GetIncludes(), "seccomp") ||
					slices.Contains(got.GetIncludes(), "own-kernel") != (runtime == "runsc") {
					t.Errorf("it says %v", got)
				}
				if r := c.bash(t, "id -u; pwd"); r.out != "1000\n/workspace\n" {
					t.Errorf("%q %q %v", r.out, r.err, r.ExecExited)
				}
			})
		}
	}
}

func TestWithoutIsolationItSaysSo(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelAuto, func(c *sandbox.Config) { c.Driver, c.NoIsolation = sandbox.DriverNone, true })
	got, err := c.workspaces.GetCapabilities(t.Context(), &sandboxv1.GetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetDriver() != "none" || got.GetLevel() != "none" || !slices.Contains(got.GetIncludes(), "no-isolation") || slices.Contains(got.GetIncludes(), "seccomp") {
		t.Errorf("it says %v", got)
	}
	if _, err := c.write(t, "file", "content", nil); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "cat file; id -u"); r.out != "content"+strconv.Itoa(os.Getuid())+"\n" {
		t.Errorf("%q %q %v", r.out, r.err, r.ExecExited)
	}
}

// TestTheDataMayBeWhereOthersMountTheirDisks has it in folders that the driver hides from
// what makes sandboxes.
func TestTheDataMayBeWhereOthersMountTheirDisks(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("it needs root")
	}
	for _, folder := range []string{"/mnt", "/srv"} {
		t.Run(strings.TrimPrefix(folder, "/"), func(t *testing.T) {
			dir, err := os.MkdirTemp(folder, "fairlead-test-")
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			c := open(t, sandbox.LevelFull, func(c *sandbox.Config) { c.Data = filepath.Join(dir, "data") })
			if r := c.bash(t, "echo x > f; cat f"); r.out != "x\n" {
				t.Errorf("%v %q", r.ExecExited, r.err)
			}
		})
	}
}
