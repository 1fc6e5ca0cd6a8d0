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

// tell has every store to a file from now on change its times, and says whether that is so.
// The times to compare with must be asked for afterwards.
func (t *Tree) tell(f *os.File) bool {
	fd := int(f.Fd())
	switch t.kind {
	case unix.OVERLAYFS_SUPER_MAGIC: // mappings are of another file, below, and that is not asked about
		return unix.Fdatasync(fd) == nil
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC: // which write nothing back
		return unwritten(fd)
	}
	return unwritten(fd) || unix.SyncFileRange(fd, 0, 0, wholly) == nil
}

// unwritten says that nobody has a file open to be written: then the kernel grants a lease to who
// reads it. It does not either where there are none, or to who may not have any. The lease is
// given back at once, for who opens the file to write to it waits for that.
func unwritten(fd int) bool {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
