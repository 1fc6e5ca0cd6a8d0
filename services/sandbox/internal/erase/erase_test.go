package erase

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/plainuser"
)

// nest makes folders in one another, each with a file, and closes the last of them.
func nest(t *testing.T, dir string, depth int, name string) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range depth {
		if err == nil {
			err = errors.Join(unix.Mkdirat(at, name, 0o700), unix.Mkdirat(at, "f", 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		next, bad := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		at, err = next, bad
	}
	if err = errors.Join(err, unix.Mkdirat(at, "f", 0o700), unix.Fchmod(at, 0)); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(at)
}

func TestATreeIsDeletedWhateverItsOwnerDidToIt(t *testing.T) {
	plainuser.Need(t)
	for name, spoil := range map[string]func(dir string){
		"closed":      func(dir string) { nest(t, dir, 3, "d") },
		"long paths":  func(dir string) { nest(t, dir, 20, strings.Repeat("d", 250)) },
		"very deep":   func(dir string) { nest(t, dir, 300, "d") },
		"itself":      func(dir string) { nest(t, dir, 3, "d"); _ = os.Chmod(dir, 0) },
		"many levels": func(dir string) { nest(t, dir, 3, "d"); _ = os.Chmod(dir+"/d/d", 0); _ = os.Chmod(dir+"/d", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			spoil(dir)
			fewFiles(t)
			if err := All(dir); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// fewFiles lowers how many files may be open for the rest of a test.
func fewFiles(t *testing.T) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
}

// A command that still sees the tree, as one does a user's storage, puts a link where a folder
// was seen.
func TestNoLinkIsFollowed(t *testing.T) {
	plainuser.Need(t)
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	fresh, closed, link := dir+"/x/n", dir+"/x/d", dir+"/x/l"
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.MkdirAll(fresh+"/f", 0o700)
			_ = os.Chmod(fresh, 0)
			_ = os.Rename(fresh, closed)
			_ = os.Symlink(outside, link)
			for range 5 {
				_ = unix.Renameat2(unix.AT_FDCWD, closed, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	for begun := time.Now(); time.Since(begun) < time.Second; {
		_ = All(dir + "/x")
	}
	close(stop)
	<-ended
	if st, err := os.Lstat(outside); err != nil || st.Mode() != 0o444 {
		t.Errorf("a file outside has the mode %v: %v", st.Mode(), err)
	}
	if err := All(dir); err != nil {
		t.Error(err)
	}
}

// TestAsAPlainUser runs the other tests as a user to whom files can be closed.
func TestAsAPlainUser(t *testing.T) {
	plainuser.Tests(t, plainuser.Folder(t), nil, "-test.timeout=10m")
}
