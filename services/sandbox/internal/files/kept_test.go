package files

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A command that closes the workspace all the time takes no mount away: what is meant for it
// would come into the folder below it, which is hidden.
func TestAMountIsThereWhateverTheWorkspaceIs(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	above, source := t.TempDir(), t.TempDir()
	dir := filepath.Join(above, "workspace")
	err := os.MkdirAll(dir+"/mnt", 0o700)
	if os.Getuid() == 0 {
		err = errors.Join(err, os.Chown(dir, nobody, -1), os.Chown(dir+"/mnt", nobody, -1),
			os.Chmod(filepath.Dir(above), 0o755), os.Chmod(above, 0o755), os.Chmod(source, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	mounts := []Mounted{{
		Alias: "mnt", Open: func() (*os.File, error) { return os.Open(source) }, As: func(f func() error) error { return f() },
	}}
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Chmod(dir, 0)
			}
		}
	})
	all.Go(func() {
		defer close(done)
		if os.Getuid() == 0 { // nothing is closed to root; the thread ends with the function
			runtime.LockOSThread()
			if err := unix.Setfsuid(nobody); err != nil {
				t.Error(err)
				return
			}
		}
		for range 500 {
			tree, err := Open(dir, "", Owner{-1, -1})
			if err != nil {
				t.Error(err)
				return
			}
			s, err := tree.With(mounts)
			if err != nil {
				t.Error(err)
				return
			}
			if s.Alias("mnt/x") != "mnt" {
				t.Error("the mount was left out")
			}
			if _, err := s.Tree.Stat("mnt"); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}

// A mount whose place cannot be looked for, as when too many files are open, is not taken for one
// that has none.
func TestAMountIsNotLeftOutByAMishap(t *testing.T) {
	tree, err := Open(t.TempDir(), "", Owner{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	_ = tree.Close()
	if s, err := tree.With([]Mounted{{Alias: "mnt"}}); !errors.Is(err, unix.EBADF) {
		t.Errorf("%v, %v", s, err)
	}
}
