package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// A process that has mapped a file can store to it unnoticed: only the first store to a page sets the
// file's time, until the page is written back. Stores after a file was read would not show. So
// makeChangesVisible makes the next store to each page a first one before the file is read. Only a process
// that has the file open for writing, which a mapping counts as, can store to it. Few files are.

// wholly writes dirty pages back and waits for that. Only that is certain: a file system may delay a
// write-back that is only begun.
const wholly = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER

// makeChangesVisible makes every later store to a file change its times, and reports whether it succeeded. The times to
// compare with must be read afterwards.
func (t *Tree) makeChangesVisible(f *os.File) bool {
	fd := int(f.Fd())
	switch t.kind {
	case unix.OVERLAYFS_SUPER_MAGIC: // mappings are of the lower file, which this check does not cover
		return unix.Fdatasync(fd) == nil
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC: // these write nothing back
		return unwritten(fd)
	}
	return unwritten(fd) || unix.SyncFileRange(fd, 0, 0, wholly) == nil
}

// unwritten reports whether no process has the file open for writing: only then does the kernel grant a
// read lease. It reports false where leases do not exist or are not allowed. It releases the lease at once,
// because a process that opens the file for writing waits for that.
func unwritten(fd int) bool {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
