package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// Who has mapped a file may store to it without the kernel hearing of that: the first store to
// a page gives the file its time, further ones do not, until the page is written back. So of
// what was stored after a file was read nothing would tell. Before one is read it is therefore
// seen to that the next store to each page is a first one. Only who has a file open to be
// written, which a mapping is, can store to it, and few files are open so.

// wholly has dirty pages written back and waits for that. Nothing less will do: what is only begun, a
// file system may leave for later.
const wholly = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER

// tell makes every later store to a file change its times, and reports whether it succeeded. The times to
// compare with must be read afterwards.
func (t *Tree) tell(f *os.File) bool {
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
