package box

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// whileClosing calls f as a plain user who owns a workspace and the home directory beside it,
// which a command closes all the time.
func whileClosing(t *testing.T, f func(workspace string)) {
	t.Helper()
	const nobody = 65534
	above := t.TempDir()
	workspace, home := filepath.Join(above, "workspace"), filepath.Join(above, "home")
	inside := filepath.Join(workspace, "workflows")
	err := errors.Join(os.Mkdir(workspace, 0o700), os.Mkdir(inside, 0o700), os.Mkdir(home, 0o700))
	if os.Getuid() == 0 {
		err = errors.Join(err, os.Chown(workspace, nobody, -1), os.Chown(inside, nobody, -1), os.Chown(home, nobody, -1), os.Chmod(filepath.Dir(above), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = errors.Join(unix.Chmod(workspace, 0), unix.Chmod(home, 0))
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
		f(workspace)
	})
	all.Wait()
}

// A command that closes the workspace all the time keeps nobody from the home directory.
func TestTheHomeDirectoryIsKeptWhateverTheWorkspaceIs(t *testing.T) {
	t.Parallel()
	whileClosing(t, func(workspace string) {
		for range 500 {
			dir, err := openOwn(workspace)
			if err != nil {
				t.Error(err)
				return
			}
			_ = dir.Close()
		}
	})
}

// Without its place a mount would be left out, and the folder below it shown and changed.
func TestMountsHaveTheirPlacesWhateverTheWorkspaceIs(t *testing.T) {
	t.Parallel()
	mounts := []Mount{{Name: "workflows", Alias: "workflows"}, {Name: "books", Source: "/usr", Alias: "mnt/books"}}
	whileClosing(t, func(workspace string) {
		for i := range 500 {
			got, err := placed(workspace, Self, mounts, i%2 == 0)
			if err != nil || len(got) != len(mounts) {
				t.Errorf("the mounts are %v: %v", got, err)
				return
			}
			f, err := got[0].Open(workspace)
			if err != nil {
				t.Error(err)
				return
			}
			_ = f.Close()
		}
	})
}
