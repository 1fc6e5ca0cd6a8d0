// Package smalldisk gives tests a disk that is quickly full.
package smalldisk

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// New returns a folder on a separate file system in memory, with options of tmpfs(5) such as `size=8192`.
// It skips the test if it may not mount.
func New(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, options); err != nil {
		t.Skip("a small disk is not available: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// Lasting makes a folder that even root cannot delete until free is called. It skips the test if it may not
// mount.
func Lasting(t *testing.T, dir string) (free func()) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4096"); err != nil {
		t.Skip("a lasting folder is not available: ", err)
	}
	inside, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	free = sync.OnceFunc(func() {
		at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", inside.Fd())) // it may have been moved
		if err := errors.Join(err, unix.Unmount(at, unix.MNT_DETACH), inside.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(free)
	return free
}
