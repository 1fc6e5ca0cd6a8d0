package files

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watching collects what a watch reports.
func watching(t *testing.T, tree *Tree, name string) (next func(want ...Changed)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reported, begun, ended := make(chan Changed, 1000), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- tree.Watch(ctx, name, func(all []Changed) error {
			if all == nil {
				begun <- struct{}{}
			}
			for _, c := range all {
				reported <- c
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	select {
	case <-begun:
	case err := <-ended:
		ended <- err
		t.Fatalf("the watch did not begin: %v", err)
	}
	return func(want ...Changed) {
		t.Helper()
		for len(want) > 0 {
			select {
			case c := <-reported:
				if i := slices.Index(want, c); i >= 0 {
					want = slices.Delete(want, i, i+1)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("never reported: %v", want)
			}
		}
	}
}

func TestAWatchTellsOfEveryChangeBelow(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"a/b/old": "1"})
	next := watching(t, tree, ".")
	must(t, os.WriteFile(filepath.Join(dir, "a/b/new"), nil, 0o644))
	next(Changed{Created, "a/b/new"})
	must(t, os.WriteFile(filepath.Join(dir, "a/b/old"), []byte("2"), 0o644))
	next(Changed{Modified, "a/b/old"})
	must(t, os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "c")))
	next(Changed{Deleted, "a/b"}, Changed{Created, "c"}, Changed{Created, "c/old"})
	must(t, os.Remove(filepath.Join(dir, "c/old")))
	next(Changed{Deleted, "c/old"})
	must(t, os.MkdirAll(filepath.Join(dir, "d/e/f"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "d/e/f/deep"), []byte("x"), 0o644))
	next(Changed{Created, "d"}, Changed{Created, "d/e/f/deep"})
}

func TestAWatchFollowsNoLink(t *testing.T) {
	outside := t.TempDir()
	tree, dir := newTree(t, map[string]string{"out": "->" + outside})
	next := watching(t, tree, ".")
	must(t, os.Symlink(outside, filepath.Join(dir, "later")))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "last"), nil, 0o644))
	next(Changed{Created, "later"}, Changed{Created, "last"})
	if err := tree.Watch(t.Context(), "out", nil); !errors.Is(err, ErrEscapes) {
		t.Errorf("a link to outside is watched: %v", err)
	}
}

func TestAWatchEndsWithItsDirectory(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"a/b/c": ""})
	err := tree.Watch(t.Context(), "a", func(all []Changed) error {
		if all == nil {
			return os.RemoveAll(filepath.Join(dir, "a"))
		}
		return nil
	})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("it ended with %v", err)
	}
}

func TestChangesThatAreReadTogether(t *testing.T) {
	var c changes
	for _, x := range []Changed{{Created, "a"}, {Modified, "a"}, {Modified, "b"}, {Modified, "b"}, {Deleted, "a"}, {Created, "a"}} {
		c.add(x)
	}
	want := []Changed{{Created, "a"}, {Modified, "b"}, {Deleted, "a"}, {Created, "a"}}
	if diff := cmp.Diff(want, c.all); diff != "" {
		t.Error(diff)
	}
}

// Only what was in a folder that went is told anew: neither the folder itself, nor what
// has a name that begins like its own.
func TestChangesOfAFolderThatGoesAreToldAnew(t *testing.T) {
	var c changes
	all := []Changed{{Created, "a"}, {Created, "a/b"}, {Created, "a/b/c"}, {Created, "a/d"}, {Created, "a/be"}, {Created, "b"}}
	for range 2 {
		for _, x := range all {
			c.add(x)
		}
		c.forget("a/b")
		c.forget("never")
	}
	c.forget("a")
	for _, x := range all {
		c.add(x)
	}
	want := slices.Concat(all, []Changed{{Created, "a/b/c"}, {Created, "a/b"}, {Created, "a/b/c"}, {Created, "a/d"}, {Created, "a/be"}})
	if diff := cmp.Diff(want, c.all); diff != "" {
		t.Error(diff)
	}
}

func TestMove(t *testing.T) {
	tests := []struct {
		name      string
		from, to  string
		overwrite bool
		want      error
	}{
		{"a file, into directories that are made", "file", "new/deep/file", false, nil},
		{"a directory with all that is in it", "dir", "moved", false, nil},
		{"a link moves itself", "link", "link2", false, nil},
		{"onto a file that is there", "file", "dir/inner", false, ErrExists},
		{"onto a file that may go", "file", "dir/inner", true, nil},
		{"onto a directory that is not empty", "empty", "dir", true, ErrNotEmpty},
		{"onto an empty directory", "dir", "empty", true, nil},
		{"a directory into itself", "dir", "dir/sub/dir", false, ErrWrongType},
		{"what is not there", "none", "x", false, ErrNotFound},
		{"to outside", "file", "../x", false, ErrEscapes},
		{"from outside", "../x", "file2", false, ErrEscapes},
		{"through a link to outside", "file", "out/x", false, ErrEscapes},
		{"the workspace", ".", "x", false, ErrWrongType},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree, _ := newTree(t, map[string]string{"dir/inner": "i", "empty/": "", "file": "f", "link": "->file", "out": "->" + t.TempDir()})
			was, _ := tree.Mark(tt.from, false)
			info, err := tree.Move(tt.from, tt.to, tt.overwrite, func(RenameStep) error { return nil })
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			is, _ := tree.Mark(tt.to, false)
			if err == nil && (is != was || info.Path != tt.to) {
				t.Errorf("it is not what was moved: %v, not %v: %+v", is, was, info)
			}
			if _, left := tree.Mark(tt.from, false); (left != nil) != (err == nil) && !errors.Is(tt.want, ErrNotFound) && !errors.Is(tt.want, ErrEscapes) {
				t.Errorf("the old name: %v after %v", left, err)
			}
		})
	}
}

// readAll reads and decodes what the kernel has told so far.
func (w *watch) readAll(t *testing.T) (all []Changed) {
	t.Helper()
	buffer := make([]byte, 64<<10)
	must(t, w.file.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	for {
		n, err := w.file.Read(buffer)
		if err != nil {
			return all
		}
		changes, err := w.decode(buffer[:n])
		must(t, err)
		all = append(all, changes...)
	}
}

// Directories that were created during an overflow are watched from then on: a client
// that reads everything again gets all later changes.
func TestAfterAnOverflowTheNewDirectoriesAreWatched(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"old/f": "1"})
	w, err := tree.watch(".")
	must(t, err)
	defer func() { _ = w.file.Close() }()
	must(t, os.Mkdir(filepath.Join(dir, "new"), 0o755))
	must(t, os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "moved")))
	must(t, os.Mkdir(filepath.Join(dir, "gone"), 0o755))
	_, err = w.file.Read(make([]byte, 64<<10)) // they are lost
	must(t, err)
	overflow := make([]byte, unix.SizeofInotifyEvent)
	binary.NativeEndian.PutUint32(overflow, ^uint32(0))
	binary.NativeEndian.PutUint32(overflow[4:], unix.IN_Q_OVERFLOW)
	got, err := w.decode(overflow)
	must(t, err)
	if diff := cmp.Diff([]Changed{{Kind: Lost}}, got); diff != "" {
		t.Errorf("of the overflow (-want +got):\n%s", diff)
	}
	for _, name := range []string{"new/a", "moved/b"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	must(t, os.Remove(filepath.Join(dir, "gone")))
	want := []Changed{{Created, "new/a"}, {Created, "moved/b"}, {Deleted, "gone"}}
	if diff := cmp.Diff(want, w.readAll(t)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

func TestAWatchEndsWhenItsDirectoryIsMovedAway(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"a/f": "1"})
	ended, begun := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		ended <- tree.Watch(t.Context(), "a", func(all []Changed) error {
			if all == nil {
				begun <- struct{}{}
			}
			return nil
		})
	}()
	<-begun
	must(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	must(t, os.WriteFile(filepath.Join(dir, "b/new"), nil, 0o644))
	select {
	case err := <-ended:
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on, under a name that is not there any more")
	}
}

// Files change places when a snapshot is restored. The kernel tells of the end of the old
// one last, though the name is there all the time.
func TestAWatchDoesNotTakeWhatWasReplacedForDeleted(t *testing.T) {
	tree, dir := newTree(t, map[string]string{
		"in/file": "1", "in/folder/a": "1", "in/other": "1", "in/was": "1", "in/is/b": "1",
		"out/file": "2", "out/folder/b": "2",
	})
	w, err := tree.watch("in")
	must(t, err)
	defer func() { _ = w.file.Close() }()
	swap := func(one, other string) {
		t.Helper()
		must(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, one), unix.AT_FDCWD, filepath.Join(dir, other), unix.RENAME_EXCHANGE))
	}
	told := func(what string, want ...Changed) {
		t.Helper()
		if diff := cmp.Diff(want, w.readAll(t)); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", what, diff)
		}
	}
	swap("out/file", "in/file")
	told("a file from outside", Changed{Created, "in/file"})
	swap("in/other", "in/file")
	told("two files", Changed{Created, "in/other"}, Changed{Created, "in/file"})
	must(t, os.Remove(filepath.Join(dir, "in/file")))
	must(t, os.WriteFile(filepath.Join(dir, "in/file"), nil, 0o644))
	told("a file that is made anew", Changed{Created, "in/file"})
	must(t, os.Remove(filepath.Join(dir, "in/file")))
	told("a file that is gone", Changed{Deleted, "in/file"})

	swap("out/folder", "in/folder")
	told("a folder from outside", Changed{Created, "in/folder"}, Changed{Created, "in/folder/b"},
		Changed{Deleted, "in/folder"}, Changed{Created, "in/folder"}, Changed{Created, "in/folder/b"})
	must(t, os.WriteFile(filepath.Join(dir, "in/folder/c"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "out/folder/c"), nil, 0o644))
	told("what came into it, and not of the old one", Changed{Created, "in/folder/c"})

	swap("in/was", "in/is")
	got := w.readAll(t)
	if !slices.Contains(got, Changed{Created, "in/was/b"}) || got[len(got)-1].Kind == Deleted {
		t.Errorf("of a file and a folder: %v", got)
	}
	must(t, os.Remove(filepath.Join(dir, "in/was/b")))
	told("what goes from it", Changed{Deleted, "in/was/b"})
}

func TestAWatchEndsWithItsWorkspace(t *testing.T) {
	source, who := t.TempDir(), bind.IDs{UID: -1, GID: -1}
	if os.Getuid() == 0 { // commands may not look at what the workspace lies in
		who = bind.IDs{UID: 65534, GID: 65534}
	}
	mounts := []Mounted{{
		Alias: "mnt", Open: func() (*os.File, error) { return os.Open(source) }, As: func(f func() error) error { return bind.As(who, f) },
	}}
	for _, name := range []string{".", "a", "mnt"} {
		for what, end := range map[string]func(session string) error{
			"it is moved away with all of its session, and deleted then": func(session string) error {
				if err := os.Rename(session, session+"-trash"); err != nil {
					return err
				}
				return os.RemoveAll(session + "-trash")
			},
			"it is moved away": func(session string) error { return os.Rename(session+"/workspace", session+"/x") },
			"it is deleted":    func(session string) error { return os.RemoveAll(session + "/workspace") },
			"another one comes": func(session string) error {
				return errors.Join(os.Rename(session, session+"-old"), os.MkdirAll(session+"/workspace/a", 0o755))
			},
		} {
			t.Run(name+": "+what, func(t *testing.T) {
				t.Parallel()
				above := t.TempDir()
				session := filepath.Join(above, "session")
				must(t, errors.Join(os.MkdirAll(session+"/workspace/a", 0o755), os.Mkdir(session+"/workspace/mnt", 0o755), os.Chmod(above, 0o700)))
				tree, err := Open(session+"/workspace", t.TempDir(), Owner{UID: -1, GID: -1})
				must(t, err)
				space, err := tree.With(mounts)
				must(t, err)
				defer func() { _ = space.Close() }()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				err = space.Watch(ctx, name, func(all []Changed) error {
					if all == nil {
						return outside(func() error { return end(session) })
					}
					return nil
				})
				if !errors.Is(err, ErrGone) && (name != "a" || !errors.Is(err, ErrNotFound)) {
					t.Errorf("it ended with %v", err)
				}
			})
		}
	}
}

// Neither what happens beside a workspace, nor that its session is called something else
// for a moment, ends a watch.
func TestAWatchGoesOnWhileItsWorkspaceIsThere(t *testing.T) {
	session := filepath.Join(t.TempDir(), "session")
	must(t, os.MkdirAll(session+"/workspace", 0o755))
	tree, err := Open(session+"/workspace", t.TempDir(), Owner{UID: -1, GID: -1})
	must(t, err)
	defer func() { _ = tree.Close() }()
	w, err := tree.watch(".")
	must(t, err)
	defer func() { _ = w.file.Close() }()
	must(t, os.WriteFile(session+"/new", nil, 0o644))
	must(t, os.Rename(session+"/new", session+"/workspace.json"))
	must(t, os.Rename(session, session+"-away"))
	must(t, os.Rename(session+"-away", session))
	must(t, os.WriteFile(session+"/workspace/f", nil, 0o644))
	if diff := cmp.Diff([]Changed{{Created, "f"}}, w.readAll(t)); diff != "" {
		t.Error(diff)
	}
}
