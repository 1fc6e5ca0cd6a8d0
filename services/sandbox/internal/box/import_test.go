package box

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What was imported counts from then on: the next export removes the copy from which it came.
func TestAnImportedWorkspaceOutlivesACrashOfTheMachine(t *testing.T) {
	base := t.TempDir()
	image, disk := filepath.Join(base, "image"), filepath.Join(base, "disk")
	mount(t, image, disk, true)
	o := options(t, &fake{})
	o.Dir = filepath.Join(disk, "data")
	n := openNode(t, o)
	c := testCall("import")
	c.Generation = 2
	_, err := n.Import(c, func(w *Workspace) error {
		return os.WriteFile(filepath.Join(w.Dir, "f"), []byte("content"), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(image) // what the disk has at this moment
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil { // or the file system stays in use
		t.Fatal(err)
	}
	crashed, after := filepath.Join(base, "crashed"), filepath.Join(base, "after")
	if err := os.WriteFile(crashed, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	mount(t, crashed, after, false)
	session := filepath.Join(after, "data", "t", "s")
	if _, err := os.Stat(filepath.Join(session, metaFile)); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(session, "workspace", "f")); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
}

// mount shows an image of a file system in a folder.
func mount(t *testing.T, image, folder string, empty bool) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	commands := [][]string{{"mount", "-o", "loop", image, folder}}
	if empty {
		commands = append([][]string{{"truncate", "-s", "16M", image}, {"mkfs.ext4", "-q", "-F", image}}, commands...)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if out, err := exec.CommandContext(t.Context(), c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v %s", c, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
}
