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

// A command that closes the workspace all the time keeps nobody from the home directory.
func TestTheHomeDirectoryIsKeptWhateverTheWorkspaceIs(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	above := t.TempDir()
	workspace, home := filepath.Join(above, "workspace"), filepath.Join(above, "home")
	err := errors.Join(os.Mkdir(workspace, 0o700), os.Mkdir(home, 0o700))
	if os.Getuid() == 0 {
		err = errors.Join(err, os.Chown(workspace, nobody, -1), os.Chown(home, nobody, -1), os.Chmod(filepath.Dir(above), 0o755))
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
		for range 500 {
			dir, err := openOwn(workspace)
			if err != nil {
				t.Error(err)
				return
			}
			_ = dir.Close()
		}
	})
	all.Wait()
}
