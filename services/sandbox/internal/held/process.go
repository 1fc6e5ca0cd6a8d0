package held

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// step inspects a little more.
func (c *Counter) step() {
	switch {
	case c.open != nil:
		c.someOpen()
	case c.maps != nil:
		c.oneMapped()
	case c.process != "":
		c.leave()
	default:
		c.next()
	}
}

// next begins to inspect the next process.
func (c *Counter) next() {
	c.looked++
	process := c.rest[0]
	c.rest = c.rest[1:]
	dir := c.living(process)
	if dir == "" {
		return // it has ended
	}
	space, err := os.Readlink(dir + "/ns/pid")
	if err == nil && space != c.of.Space {
		return // it has ended, and its pid was reused
	}
	var err2, err3 error
	c.open, err2 = os.Open(dir + "/fd")
	if c.maps, err3 = os.Open(dir + "/maps"); c.maps != nil {
		c.lines = bufio.NewReader(c.maps)
	}
	if err := errors.Join(err, err2, err3); err != nil && c.lives(dir) {
		c.unseen(process, err)
	}
	for _, kept := range []string{"/exe", "/cwd", "/root"} { // these are held even if they are not open
		var st unix.Stat_t
		if unix.Stat(dir+kept, &st) == nil {
			c.some(&st, dir+kept)
		}
	}
	c.process, c.dir, c.owns = process, dir, false
}

// unseen records a failed look at a live process. If no more files can be opened, the process is not to
// blame and hides nothing.
func (c *Counter) unseen(process string, err error) {
	switch {
	case unrelated(err):
		c.blind = true
	case !c.starts(process):
		c.hides = true
	}
}

// starts reports whether init has started the process and it has not executed its program yet. It still
// shares init's memory, which must not be inspected.
func (c *Counter) starts(process string) bool {
	if f, err := flags(process); err != nil || f&unexecuted == 0 {
		return false
	}
	pid, err := strconv.Atoi(filepath.Base(process))
	if err == nil && slices.Contains(c.of.First, pid) {
		return true
	}
	c.of.Starting--
	return c.of.Starting >= 0
}

// leave ends the inspection of a process. If the inspected thread has ended meanwhile, with its open files,
// it repeats the inspection through another thread.
func (c *Counter) leave() {
	if !c.lives(c.dir) && c.living(c.process) != "" {
		c.rest = append(c.rest, c.process)
	}
	c.process = ""
}

// living returns the folder of a live thread of a process: the first thread may end before the others. It
// is empty if the process has ended.
func (c *Counter) living(process string) string {
	if c.lives(process) {
		return process
	}
	threads, err := os.Open(process + "/task")
	if err != nil {
		if !ended(err) {
			c.unseen(process, err)
		}
		return ""
	}
	defer func() { _ = threads.Close() }()
	for err == nil {
		var names []string
		names, err = threads.Readdirnames(64)
		for _, name := range names {
			c.looked++
			if dir := process + "/task/" + name; c.lives(dir) {
				return dir
			}
		}
	}
	return ""
}

// Flags of threads, by the kernel's names. PF_EXITING marks a thread on its way to its end, which can open
// nothing more and cannot turn back. PF_FORKNOEXEC marks a thread that has executed nothing yet; it is
// never set again.
const ending, unexecuted = 0x4, 0x40

// lives reports whether a thread has not begun to end. A thread whose state is unreadable counts as live.
func (c *Counter) lives(dir string) bool {
	f, err := flags(dir)
	c.blind = c.blind || unrelated(err)
	return f&ending == 0
}

// flags returns a thread's flags, which any process may read, even of a thread that cannot be inspected.
// For a missing thread it returns those of an ending one.
func flags(dir string) (uint64, error) {
	raw, err := os.ReadFile(dir + "/stat")
	switch {
	case ended(err):
		return ending, nil
	case err != nil:
		return 0, err
	}
	all := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:]) // from the state on: proc_pid_stat(5)
	if len(all) < 7 {
		return 0, fmt.Errorf("the kernel says %q of %s", raw, dir)
	}
	return strconv.ParseUint(string(all[6]), 10, 64)
}

// ended reports whether an error means that a process or a thread no longer exists.
func ended(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// unrelated reports whether an error is not about the process: no file can be opened now.
func unrelated(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// someOpen counts some of the files that a process has open.
func (c *Counter) someOpen() {
	names, err := c.open.Readdirnames(64)
	for _, name := range names {
		c.looked++
		var st unix.Stat_t
		if unix.Fstatat(int(c.open.Fd()), name, &st, 0) != nil {
			continue
		}
		if st.Mode&unix.S_IFMT == unix.S_IFCHR {
			c.someTerminal(name, uint64(st.Rdev)) //nolint:unconvert // the type is the architecture's
		}
		c.some(&st, c.dir+"/fd/"+name)
	}
	if err != nil {
		_ = c.open.Close()
		c.open = nil
	}
}

// some counts a deleted file or folder of the device that a process holds by a path.
func (c *Counter) some(st *unix.Stat_t, path string) {
	if kind := st.Mode & unix.S_IFMT; (kind == unix.S_IFREG || kind == unix.S_IFDIR) && st.Nlink == 0 && uint64(st.Dev) == c.device && !readOnly(path) { //nolint:unconvert // the type is the architecture's
		c.count(st.Ino, st.Blocks*512)
	}
}

// readOnly reports whether a file is on a mount that the sandbox cannot change. Files there are deleted
// only from outside. A workspace is no such mount.
func readOnly(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

// Numbers of devices (Linux's devices.txt). ptmx opens a terminal's master; all masters share it. firstEnd
// to lastEnd are the slaves' majors. own opens a process's controlling terminal, whichever that is.
var ptmx, own = unix.Mkdev(5, 2), unix.Mkdev(5, 0)

const firstEnd, lastEnd = 136, 143

// someTerminal counts a character device that is an end of a pseudo-terminal. A process's open controlling
// terminal may be any terminal. The first such counts as counted elsewhere, or as shared with other
// processes; each further one counts as a different terminal.
func (c *Counter) someTerminal(name string, device uint64) {
	major := unix.Major(device)
	switch {
	case major >= firstEnd && major <= lastEnd:
		c.terminals[(major-firstEnd)<<8+unix.Minor(device)] = struct{}{}
	case device == own && c.owns:
		c.others++
	case device == own:
		c.owns = true
	case device == ptmx:
		if number, ok := c.master(name); ok {
			c.terminals[number] = struct{}{}
		}
	}
}

// master returns the number of the pseudo-terminal whose master a descriptor is.
func (c *Counter) master(name string) (number uint32, ok bool) {
	info, err := os.ReadFile(c.dir + "/fdinfo/" + name)
	c.blind = c.blind || unrelated(err)
	if err != nil {
		return 0, false
	}
	_, text, ok := bytes.Cut(info, []byte("tty-index:"))
	text, _, _ = bytes.Cut(text, []byte("\n"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 32)
	return uint32(n), ok && err == nil
}

// oneMapped records one mapping of a process, unless the file is known.
func (c *Counter) oneMapped() {
	raw, length, err := readLine(c.lines)
	c.looked += 1 + length/1024 // long names take time
	if m, ok := parseMapping(raw, c.number); ok {
		if _, known := c.seen[m.inode]; !known && m.length() > c.mapped[m.inode].length() {
			m.dir = "/proc/" + filepath.Base(c.dir) // a thread has no such folder below its process's
			c.mapped[m.inode] = m
		}
	}
	if err != nil {
		_ = c.maps.Close()
		c.maps = nil
	}
}
