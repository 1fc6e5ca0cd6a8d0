package integration

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// closed makes a folder below one that no user may read or change, as a command
// may do that has the service's own user.
const closed = "mkdir -p top/inner && touch top/inner/f && chmod 0 top/inner && chmod 500 top"

func TestWhatACommandHasClosedIsDeletedAllTheSame(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(cfg *sandbox.Config) { cfg.Storage.Alias = "storage" })
		c.bash(t, "mkdir -p top/inner && touch top/inner/f && chmod 0 top/inner; cd storage && "+closed)
		if _, err := c.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: c.call(), Path: "top", Recursive: true}); err != nil {
			t.Errorf("a folder: %v", err)
		}
		if _, err := c.workspaces.DeleteUserStorage(t.Context(), &sandboxv1.DeleteUserStorageRequest{}); err != nil {
			t.Errorf("a user's storage: %v", err)
		}
	})
}

func TestWhatACommandHasClosedIsExportedAllTheSame(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		c.bash(t, closed)
		modes := map[string]int64{}
		for in := tar.NewReader(bytes.NewReader(c.export(t))); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			modes[h.Name] = h.Mode
		}
		if mode, there := modes["top/inner/"]; !there || mode != 0 || modes["top/"] != 0o500 || modes["top/inner/f"] == 0 {
			t.Errorf("in it is %v", modes)
		}
		if got := c.bash(t, "stat -c %a top top/inner; chmod -R 700 top"); got.out != "500\n0\n" {
			t.Errorf("afterwards the modes are %q", got.out)
		}
	})
}

// A service that died while it deleted something begins with the rest.
func TestWhatACommandHasClosedKeepsNoServiceFromStarting(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		cfg := configuration(t, level)
		cfg.Storage.Alias = "storage"
		first := start(t, cfg)
		first.stop()
		for _, left := range []string{".trash/1/x", ".storage/.removed/1/x"} {
			dir := filepath.Join(cfg.Data, left)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", closed)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		second := start(t, cfg)
		second.ensure(t.Context(), t)
		for _, left := range []string{".trash/1", ".storage/.removed/1"} {
			if _, err := os.Lstat(filepath.Join(cfg.Data, left)); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", left, err)
			}
		}
	})
}

func TestAWorkspaceWhoseMakingWasCutOffIsRemovedAtTheStart(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, sandbox.LevelBasic)
	start(t, cfg).stop()
	left, other := filepath.Join(cfg.Data, "default", "cut-off"), filepath.Join(cfg.Data, "lost+found", "x")
	for _, dir := range []string{filepath.Join(left, "workspace"), other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	start(t, cfg)
	if _, err := os.Lstat(left); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Lstat(other); err != nil {
		t.Errorf("what is no workspace's is gone: %v", err)
	}
}
