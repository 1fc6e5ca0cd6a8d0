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

// A link does not lead into a mount nor out of one, and what is denied is so in mounts.
func TestRulesHoldInMounts(t *testing.T) {
	s, dir := withMount(t)
	must(t, errors.Join(os.Mkdir(dir+"/secret", 0o700), os.WriteFile(dir+"/secret/k", []byte("needle"), 0o600), os.WriteFile(dir+"/plain", []byte("needle"), 0o600)))
	must(t, errors.Join(os.Symlink("secret", dir+"/open"), os.Symlink("../x", dir+"/out"), os.Symlink("mnt/plain", s.root.Name()+"/in")))
	for name, want := range map[string]string{"mnt": "mnt", "mnt/open/k": "mnt/secret/k", "/workspace/mnt/open/new": "mnt/secret/new"} {
		if got, err := s.Resolve(name); err != nil || got != want {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]error{"in": ErrNotFound, "mnt/out": ErrEscapes} {
		if got, err := s.Resolve(name); !errors.Is(err, want) {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
	rules, err := NewRules(".", true, []string{"mnt/secret/**"})
	must(t, err)
	s.Rules = rules
	if _, err := s.Read("mnt/open/k"); !errors.Is(err, ErrChanged) {
		t.Errorf("a link in the mount: %v", err)
	}
	var got []string
	_, err = s.Grep(t.Context(), GrepQuery{Pattern: "needle", Max: 9, Mode: GrepFiles}, func(m GrepMatch) error { got = append(got, m.Path); return nil })
	if err != nil || len(got) != 1 || got[0] != "mnt/plain" || !rules.LeftOut {
		t.Errorf("grep finds %v, %v", got, err)
	}
	if all, _, err := s.Glob(t.Context(), "**/k", "", 9); err != nil || len(all) != 0 {
		t.Errorf("glob finds %v, %v", all, err)
	}
	all, _, err := s.List(t.Context(), "mnt", "", 9, nil)
	for _, i := range all {
		if i.Path == "mnt/secret" {
			t.Error("list has mnt/secret")
		}
	}
	if err != nil || len(all) != 3 {
		t.Errorf("list has %v, %v", all, err)
	}
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
	if _, _, err := tree.Put(d, "f", Target{Before: func(RenameStep, Info, int64) error { return nil }}); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if err := tree.makeDirectories("d/e"); err != nil {
		return fmt.Errorf("making folders: %w", err)
	}
	before := func(RenameStep) error { return nil }
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
	i, err := tree.Move("old", "new", false, func(RenameStep) error {
		return errors.Join(os.Rename(dir+"/old", dir+"/away"), os.Rename(dir+"/other", dir+"/old"))
	})
	must(t, err)
	now, err := tree.Stat("new")
	must(t, err)
	if i != now {
		t.Errorf("it told of %+v, and there is %+v", i, now)
	}
}
