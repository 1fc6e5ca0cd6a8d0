package bubblewrap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// A file of the machine is shown as it is when a sandbox is made, whether it was replaced since the
// last one was or written over. A folder is shown itself.
func TestSandboxesSeeFilesAsTheyAre(t *testing.T) {
	g := newStage(t)
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "folder")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	e := newETC(g, &rootfs.Layout{Binds: []rootfs.Bind{{Path: "/etc/deep/file", Source: file}, {Path: "/etc/folder", Source: folder}, {Path: "/usr", Source: "/usr"}}})
	see := func(name string) (text string) {
		at, err := e.path()
		if err != nil {
			t.Fatal(err)
		}
		_ = g.Do(func() error {
			raw, err := os.ReadFile(at + "/" + name)
			text = string(raw)
			return err
		})
		return text
	}
	write(file, "one")
	if got := see("deep/file"); got != "one" {
		t.Errorf("at first: %q", got)
	}
	before, _ := e.path()
	if again, _ := e.path(); again != before {
		t.Error("it was made anew, and nothing had changed")
	}
	write(file, "two and more")
	if got := see("deep/file"); got != "two and more" {
		t.Errorf("written over: %q", got)
	}
	write(file+".new", "three")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(folder, "late"), "late")
	if got := see("deep/file"); got != "three" {
		t.Errorf("replaced: %q", got)
	}
	if got := see("folder/late"); got != "late" {
		t.Errorf("in a folder: %q", got)
	}
	if got := see("passwd"); got != rootfs.MadeFiles[0].Text {
		t.Errorf("what is made up: %q", got)
	}
	at, _ := e.path()
	_ = g.Do(func() error {
		for _, name := range []string{"/x", "/deep/file"} {
			if err := os.WriteFile(at+name, nil, 0o600); err == nil {
				t.Errorf("%s can be written", name)
			}
		}
		return nil
	})
}

// Who still has a file open that was written, as a process that is being started may, keeps no sandbox from being made.
func TestALateWriterKeepsNothingFromBeingReadOnly(t *testing.T) {
	g := newStage(t)
	err := g.Do(func() error {
		at := g.Fresh("late")
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		defer func() { _ = takeDown(at) }()
		if err := unix.Mount("late", at, "tmpfs", 0, "size=1m"); err != nil {
			return err
		}
		late, err := os.Create(filepath.Join(at, "late"))
		if err != nil {
			return err
		}
		defer func() { _ = late.Close() }()
		if err := finish(at); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(at, "later"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("a file was made, and %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newStage(t *testing.T) *rootfs.Stage {
	if os.Getuid() != 0 {
		t.Skip("a stage takes root")
	}
	thread := rootfs.NewThread(0)
	t.Cleanup(thread.Close)
	g, err := rootfs.NewStage(thread)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
