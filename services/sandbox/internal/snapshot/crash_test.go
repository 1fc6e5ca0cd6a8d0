package snapshot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a restore puts in the place of files is on the disk before they are gone.
func TestACrashOfTheMachineAfterARestoreLeavesNoFileEmpty(t *testing.T) {
	for _, files := range []int{20, syncedAlone + 1} {
		t.Run(strconv.Itoa(files), func(t *testing.T) { crashAfterRestore(t, files) })
	}
}

func crashAfterRestore(t *testing.T, files int) {
	base := t.TempDir()
	image, disk := filepath.Join(base, "image"), filepath.Join(base, "disk")
	mount(t, image, disk, true)
	p := &testPlace{t: t, dir: filepath.Join(disk, "workspace"), where: filepath.Join(disk, "store")}
	staging := filepath.Join(disk, "staging")
	p.must(os.Mkdir(p.dir, 0o700))
	p.must(os.Mkdir(staging, 0o700))
	tree, err := OpenTree(p.dir, staging, Owner{-1, -1})
	p.must(err)
	p.tree = tree
	defer func() { _ = tree.Close() }()
	s, err := Open(p.where)
	p.must(err)
	defer func() { _ = s.Close() }()
	for _, content := range []string{"one", "behind"} {
		for n := range files {
			p.write(strconv.Itoa(n), content)
		}
		_, err := s.Create(t.Context(), tree, Request{ID: content, Now: time.Now()})
		p.must(err)
	}
	_, err = s.Restore(t.Context(), tree, "one")
	p.must(err)
	answer, err := os.Create(filepath.Join(disk, "answer"))
	p.must(err)
	p.must(answer.Sync())
	p.must(answer.Close())
	raw, err := os.ReadFile(image) // what the disk has at this moment
	p.must(err)
	crashed, after := filepath.Join(base, "crashed"), filepath.Join(base, "after")
	p.must(os.WriteFile(crashed, raw, 0o600))
	mount(t, crashed, after, false)
	for n := range files {
		if got, err := os.ReadFile(filepath.Join(after, "workspace", strconv.Itoa(n))); err != nil || string(got) != "one" {
			t.Errorf("%d has %q, %v", n, got, err)
		}
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

// A workspace may be unused for long, and a torn pack is large.
func TestWhatACrashLeftOfAStoreIsRemovedWithoutOpeningIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "x")
	p.create("one")
	want := p.capture()
	torn := []string{filepath.Join(p.where, packsDir, "new-1"), filepath.Join(p.where, recordsDir, "000000000002.two.json.new")}
	for _, name := range torn {
		p.must(os.WriteFile(name, []byte("torn"), 0o600))
	}
	p.must(Tidy(p.where))
	for _, name := range torn {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	p.must(os.Remove(p.path("f")))
	p.restore("one")
	if diff := cmp.Diff(want, p.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	p.must(Tidy(nowhere))
	if _, err := os.Lstat(nowhere); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
}
