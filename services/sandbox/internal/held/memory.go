package held

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Weigher says what the processes of a sandbox have in memory together. A look takes as long as it takes: some
// hundreds of processes with some gigabytes take seconds.
type Weigher struct {
	As        func(func() error) error // runs a function with the rights to inspect the processes
	Processes func() Processes         // returns the processes of the sandbox
	Segments  func() int64             // returns the current bytes of System V segments and the like
	Limit     int64                    // bytes that they may have
}

// Weigh is how many bytes the processes have in memory: what is their own, also what of it is swapped out, with the tables
// of their pages; what they have mapped of files in memory; and such files that have no name and are open. The last two, and
// segments, may be the same: of the two counts the larger one holds.
//
// While all is within the limit, a page that several processes have counts for each: that is quick to learn. Beyond, such
// a page counts once. Processes are looked at one after the other, and go on meanwhile: so it is only too much what was
// so twice. With an error nothing is known: it is no command's doing.
func (w Weigher) Weigh() (int64, error) {
	first, err := w.once()
	if err != nil || first <= w.Limit {
		return first, err
	}
	second, err := w.once()
	if err != nil {
		return 0, err
	}
	return min(first, second), nil
}

func (w Weigher) once() (int64, error) {
	before, p := w.Segments(), w.Processes()
	all := make(map[int]inMemory, len(p.All))
	for _, pid := range p.All {
		if space, err := spaceOf(strconv.Itoa(pid)); err == nil && space != p.Space {
			continue // it has ended; another one has its number
		}
		if m, ok := memoryOf("/proc/" + strconv.Itoa(pid)); ok {
			all[pid] = m
		}
	}
	var unnamed int64
	err := w.As(func() (err error) {
		unnamed, err = openInMemory(all)
		return err
	})
	if err != nil {
		return 0, err
	}
	own, mapped := total(all)
	if sum := own + max(mapped, unnamed+before); sum <= w.Limit {
		return sum, nil
	}
	err = w.As(func() (err error) {
		own, mapped, err = shares(all)
		return err
	})
	if err != nil {
		return 0, err
	}
	return own + max(mapped, unnamed+min(before, w.Segments())), nil
}

// inMemory is what a process has in memory, in bytes: its own, and what it has mapped of files in memory.
type inMemory struct {
	own, shared int64
	tables      int64 // of own: those of its pages
	parent      int
	dir         string // of the thread that tells
}

func total(all map[int]inMemory) (own, shared int64) {
	for _, m := range all {
		own, shared = own+m.own, shared+m.shared
	}
	return own, shared
}

// shares adds up what processes have in memory, where a page that several have counts once. They are looked at one after
// the other: what one had a part of that ended meanwhile, or executed something, counts with those that have all of it since.
func shares(all map[int]inMemory) (own, shared int64, err error) {
	found, err := parts(all)
	if err != nil {
		return 0, 0, err
	}
	own, shared = still(found)
	return own, shared, nil
}

// part is what a process has in memory, with its part of what it shares.
type part struct {
	own, shared int64
	stack       string // where that begins, which is elsewhere in each program that it executes; empty: not to be known
}

// parts returns the part of each process. For a process that cannot be inspected, all memory counts. An
// error means that no file can be opened now.
func parts(all map[int]inMemory) (map[int]part, error) {
	found := make(map[int]part, len(all))
	for pid, m := range all {
		if parent, known := all[m.parent]; known && sameMemory(pid, m, m.parent, parent) {
			continue // it is about to execute a program: vfork(2)
		}
		p := part{own: m.own, shared: m.shared, stack: stack(pid)} // before the look: it may execute something in that
		sum, err := fields(m.dir+"/smaps_rollup", "Pss_Anon:", "SwapPss:", "Pss_Shmem:")
		switch {
		case err == nil:
			p.own, p.shared = sum[0]+sum[1]+m.tables, sum[2]
		case ended(err):
			continue
		case unrelated(err):
			return nil, err
		}
		found[pid] = p
	}
	return found, nil
}

// still adds up the parts of processes that have that memory still.
func still(found map[int]part) (own, shared int64) {
	for pid, p := range found {
		if _, lives := memoryOf("/proc/" + strconv.Itoa(pid)); lives && stack(pid) == p.stack {
			own, shared = own+p.own, shared+p.shared
		}
	}
	return own, shared
}

// stack is where a process's stack begins.
func stack(pid int) string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	all := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:]) // from the state on: proc_pid_stat(5)
	if len(all) < 26 {
		return ""
	}
	return string(all[25])
}

// memoryOf is what a process has in memory, as everybody may know. The first of its threads may have ended, with
// which went what is known of it.
func memoryOf(dir string) (m inMemory, ok bool) {
	if m, ok = threadMemory(dir); ok {
		return m, true
	}
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		return m, false
	}
	for _, t := range tasks {
		if m, ok = threadMemory("/proc/" + t.Name()); ok {
			return m, true
		}
	}
	return m, false
}

func threadMemory(dir string) (m inMemory, ok bool) {
	sum, err := fields(dir+"/status", "RssAnon:", "VmSwap:", "VmPTE:", "RssShmem:", "PPid:")
	if err != nil {
		return m, false
	}
	return inMemory{own: sum[0] + sum[1] + sum[2], tables: sum[2], shared: sum[3], parent: int(sum[4]), dir: dir}, true
}

// fields are numbers of a file of a process's that has one in a line, behind its name. Those in kB are
// in bytes then. It is an error that one is missing.
func fields(path string, names ...string) (all []int64, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all = make([]int64, len(names))
	for i, name := range names {
		_, line, found := bytes.Cut(raw, []byte("\n"+name))
		line, _, _ = bytes.Cut(line, []byte("\n"))
		number, kilo := bytes.CutSuffix(bytes.TrimSpace(line), []byte(" kB"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("%s has no number of %s", path, name)
		}
		if kilo {
			n <<= 10
		}
		all[i] = n
	}
	return all, nil
}

// sameMemory reports whether two processes share one memory: kcmp(2), KCMP_VM. Some containers forbid that
// call; then processes with exactly equal figures count as sharing.
func sameMemory(a int, of inMemory, b int, other inMemory) bool {
	const vm = 1
	differ, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), vm, 0, 0, 0)
	if e == 0 {
		return differ == 0
	}
	if _, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(unix.Getpid()), uintptr(unix.Getpid()), vm, 0, 0, 0); e == 0 {
		return false
	}
	one, err := os.ReadFile(of.dir + "/smaps_rollup")
	two, err2 := os.ReadFile(other.dir + "/smaps_rollup")
	return errors.Join(err, err2) == nil && bytes.Equal(one, two)
}

// openInMemory is how many bytes the files have that processes have open, and that are in memory without a name:
// memfd_create(2).
func openInMemory(all map[int]inMemory) (sum int64, err error) {
	device, err := memoryDevice()
	if err != nil {
		return 0, err
	}
	seen := map[uint64]int64{}
	for _, m := range all {
		open, err := os.Open(m.dir + "/fd")
		if err != nil {
			continue // it has ended, or cannot be inspected; a check of what is on the disk notices the latter
		}
		for err == nil {
			var names []string
			names, err = open.Readdirnames(64)
			for _, name := range names {
				var st unix.Stat_t
				if unix.Fstatat(int(open.Fd()), name, &st, 0) == nil && st.Nlink == 0 && uint64(st.Dev) == device { //nolint:unconvert // the type is the architecture's
					seen[st.Ino] = st.Blocks * 512
				}
			}
		}
		_ = open.Close()
	}
	for _, bytes := range seen {
		sum += bytes
	}
	return sum, nil
}

// memoryDevice is the number of the file system in which those files are.
func memoryDevice() (uint64, error) {
	fd, err := unix.MemfdCreate("device", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("find the device of files in memory: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return uint64(st.Dev), err //nolint:unconvert // the type is the architecture's
}
