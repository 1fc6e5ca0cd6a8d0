// Package smalldisk gives tests a disk that is soon full.
package smalldisk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// New is a folder on a file system of its own, in memory, with options as tmpfs(5) has them, such as
// `size=8192`. Who cannot mount skips the test.
func New(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, options); err != nil {
		t.Skip("a small disk is not to be had: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}
