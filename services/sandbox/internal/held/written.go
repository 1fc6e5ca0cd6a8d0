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

// addWritten adds up what the processes have had written to disks that were listed last: together with what was
// there before, none of their files is larger. The kernel notes it where a page of a file is changed, or is
// written past its memory (proc_pid_io(5)), and adds what one had written that has ended to what its parent has, when
// that waits for it. Who is waited for meanwhile may be missing, but does not count twice: parents come first,
// mostly. Nobody knows what those have written whose parents do not want to wait (SA_NOCLDWAIT), nor do they.
//
// It is too much where it cannot be known, and what it was where nobody can open a file now.
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

// silent says of a kind of file system whether the kernel notes who writes there. It does not where a page is sent away as
// soon as it is written, and never waits for that in memory: FUSE, as long as it is not told to keep them, which nobody
// sees, and virtiofs, which has the same number; and 9p. Nor does it where files are in memory.
func silent(kind int64) bool {
	return slices.Contains([]int64{unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC}, kind)
}

// errUnwaited says that a process has ended, and that nobody waits for it: nobody but root may ask what it has written.
var errUnwaited = errors.New("it has ended, and is not waited for")

// writtenBy is what a process has had written, with all of its threads and whom it has waited for. One that has ended is
// its parent's soon, unless it was among those that were so before. One that cannot be asked, and has not executed its
// program yet, is init's, or one that hides: that is noticed elsewhere.
func (c *Counter) writtenBy(pid int, before map[int]struct{}) (int64, error) {
	process := "/proc/" + strconv.Itoa(pid)
	dir := c.living(process)
	if dir == "" {
		return 0, c.noteUnwaited(pid, before)
	}
	n, err := readWritten("/proc/" + filepath.Base(dir)) // of a thread's folder that is not below its process's it is that of all
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
		return nil //nolint:nilerr // it was waited for
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
