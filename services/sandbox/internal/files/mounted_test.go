package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/plainuser"
)

// withMount is a workspace with a writable mount of a folder, at mnt.
func withMount(t *testing.T) (s *Space, dir string) {
	t.Helper()
	tree, _ := newTree(t, map[string]string{"mnt/": ""})
	dir = t.TempDir()
	s, err := tree.With([]Mounted{{
		Alias: "mnt", Writable: true, As: func(f func() error) error { return f() }, Open: func() (*os.File, error) { return os.Open(dir) },
	}})
	must(t, err)
	return s, dir
}

// In a mount as well a command may nest folders deeper than files can be open, and close them.
func TestATreeInAMountIsRemovedWhateverItsOwnerDidToIt(t *testing.T) {
	plainuser.Need(t)
	s, dir := withMount(t)
	must(t, os.Mkdir(dir+"/x", 0o700))
	at := dir + "/x"
	for range 300 {
		at += "/d"
		must(t, os.Mkdir(at, 0o700))
	}
	must(t, os.WriteFile(at+"/f", nil, 0o600))
	must(t, os.Chmod(at, 0))
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: was.Max}))
	must(t, s.Remove("mnt/x", true, nil))
	if _, err := os.Lstat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// A command that closes the workspace all the time keeps nothing from being changed in it.
func TestTheWorkspaceIsChangedThatACommandKeepsClosing(t *testing.T) {
	plainuser.Need(t)
	tree, dir := newTree(t, map[string]string{"mnt/": "", "here": "->."})
	_, err := tree.With([]Mounted{{Alias: "mnt"}})
	must(t, err)
	done := make(chan struct{})
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = unix.Chmod(dir, 0)
				}
			}
		})
	}
	for n := range 300 {
		if err := makeMoveRemove(tree); err != nil {
			t.Errorf("at the %dth time: %v", n, err)
			break
		}
	}
	close(done)
	closing.Wait()
	must(t, os.Chmod(dir, 0o700))
}

func makeMoveRemove(tree *Tree) error {
	d, err := tree.Draft()
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, _, err := tree.Put(d, "f", Target{Before: func(Step, Info, int64) error { return nil }}); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if err := tree.makeDirectories("d/e"); err != nil {
		return fmt.Errorf("making folders: %w", err)
	}
	before := func(Step) error { return nil }
	if _, err := tree.Move("f", "g", false, before); err != nil {
		return fmt.Errorf("moving: %w", err)
	}
	if err := tree.Remove("g", false, before); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	if err := tree.Remove("d", true, before); err != nil {
		return fmt.Errorf("deleting folders: %w", err)
	}
	if _, err := tree.Move("here/mnt", "x", false, before); !errors.Is(err, ErrMountPoint) {
		return fmt.Errorf("moving the place of a mount: %w", err)
	}
	return nil
}

// TestAsAPlainUser runs those of the other tests that root has to leave out.
func TestAsAPlainUser(t *testing.T) {
	plainuser.Tests(t, plainuser.Folder(t), nil, "-test.timeout=10m", "-test.run=OwnerDid|KeepsClosing")
}

// A command may put another file where the old name was just before it moves: it is that one that
// has the new name then, and that is told of.
func TestAMoveTellsOfWhatItMoved(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"old": "1", "other": "longer"})
	i, err := tree.Move("old", "new", false, func(Step) error {
		return errors.Join(os.Rename(dir+"/old", dir+"/away"), os.Rename(dir+"/other", dir+"/old"))
	})
	must(t, err)
	now, err := tree.Stat("new")
	must(t, err)
	if i != now {
		t.Errorf("it told of %+v, and there is %+v", i, now)
	}
}
