package held

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// addWritten sums the bytes that the processes listed last have written to disks. That sum, with the bytes
// that were there before, bounds the size of each of their files. The kernel counts a page when it is
// dirtied, or a write that bypasses the page cache (proc_pid_io(5)). A parent that reaps a child takes over
// its count. The count of a process reaped during the sum may be missed. It is not added twice, because
// parents mostly come first. The writes of children of a parent that ignores them (SA_NOCLDWAIT) are lost.
//
// It returns TooMuch if the sum cannot be known, and the earlier sum if no file can be opened now.
func (c *Counter) addWritten(as func(func() error) error) (bytes int64) {
	switch {
	case c.silent:
		return TooMuch
	case c.blind:
		return c.written
	}
	before := c.unwaited
	c.unwaited = map[int]struct{}{}
	err := as(func() error {
		for _, pid := range slices.Sorted(slices.Values(c.of.All)) {
			n, err := c.writtenBy(pid, before)
			switch {
			case unrelated(err):
				return err
			case err != nil:
				n = TooMuch
			}
			bytes = min(bytes+n, TooMuch)
		}
		return nil
	})
	if err != nil {
		return c.written
	}
	return bytes
}

// silent reports whether the kernel does not count writes to a kind of file system. It does not if a page
// is sent away as soon as it is written: on FUSE without a writeback cache, which cannot be detected, on
// virtiofs, which has the same number, and on 9p. It does not count files in memory either.
func silent(kind int64) bool {
	return slices.Contains([]int64{unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC}, kind)
}

// errUnwaited means that a process has ended but is not reaped: only root may read how much it has written.
var errUnwaited = errors.New("it has ended, and is not waited for")

// writtenBy returns the bytes written by a process, all its threads and its reaped children. The count of
// an ended process soon passes to its parent, unless the process was already unreaped before. A process
// that cannot be asked, and has not executed its program yet, is init's or hides; other code detects that.
func (c *Counter) writtenBy(pid int, before map[int]struct{}) (int64, error) {
	process := "/proc/" + strconv.Itoa(pid)
	dir := c.living(process)
	if dir == "" {
		return 0, c.noteUnwaited(pid, before)
	}
	n, err := readWritten("/proc/" + filepath.Base(dir)) // for a thread's folder that is not below its process's, the count is that of all threads
	switch {
	case err == nil:
		return n, nil
	case ended(err) && c.living(process) == "":
		return 0, nil
	}
	if f, err := flags(dir); err == nil && f&unexecuted != 0 {
		return 0, nil
	}
	return 0, err
}

func (c *Counter) noteUnwaited(pid int, before map[int]struct{}) error {
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err != nil {
		return nil //nolint:nilerr // it was reaped
	}
	c.unwaited[pid] = struct{}{}
	if _, known := before[pid]; known {
		return errUnwaited
	}
	return nil
}

func readWritten(dir string) (int64, error) {
	raw, err := os.ReadFile(dir + "/io")
	if err != nil {
		return 0, err
	}
	_, text, ok := bytes.Cut(raw, []byte("\nwrite_bytes: "))
	text, _, _ = bytes.Cut(text, []byte("\n"))
	n, err := strconv.ParseInt(string(text), 10, 64)
	if !ok || err != nil {
		return 0, errors.Join(fmt.Errorf("the kernel says %q of what %s has written", raw, dir), err)
	}
	return n, nil
}
