package held

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Weigher measures how much memory the processes of a sandbox use together. A measurement of some hundreds
// of processes with some gigabytes takes seconds.
type Weigher struct {
	As        func(func() error) error // runs a function with the rights to inspect the processes
	Processes func() Processes         // returns the processes of the sandbox
	Segments  func() int64             // returns the current bytes of System V segments and the like
	Limit     int64                    // bytes that they may have
}

// Weigh returns how many bytes of memory the processes use. It counts their own memory, including swapped
// pages and page tables, their mapped files in memory, and such files that have no name and are open. The
// last two, and segments, may be the same memory: the larger of the two counts holds.
//
// While the sum is within the limit, a shared page counts for each process, which is quick. Beyond the
// limit, such a page counts once. Processes are measured one after the other while they run. So the result
// is too much only if two measurements are. After an error nothing is known, and no command is to blame.
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
			continue // it has ended, and its pid was reused
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

// inMemory is the memory of a process, in bytes: its own, and its mapped files in memory.
type inMemory struct {
	own, shared int64
	tables      int64 // the page tables, part of own
	parent      int
	dir         string // of the thread that was read
}

func total(all map[int]inMemory) (own, shared int64) {
	for _, m := range all {
		own, shared = own+m.own, shared+m.shared
	}
	return own, shared
}

// shares sums the memory of processes, with each shared page counted once. Processes are measured one after
// the other. If a process ends or executes a program meanwhile, its part counts for the processes that
// still share it.
func shares(all map[int]inMemory) (own, shared int64, err error) {
	found, err := parts(all)
	if err != nil {
		return 0, 0, err
	}
	own, shared = still(found)
	return own, shared, nil
}

// part is the memory of a process, with its part of shared memory.
type part struct {
	own, shared int64
	stack       string // where the stack begins, which differs between executed programs; empty: unknown
}

// parts returns the part of each process. For a process that cannot be inspected, all memory counts. An
// error means that no file can be opened now.
func parts(all map[int]inMemory) (map[int]part, error) {
	found := make(map[int]part, len(all))
	for pid, m := range all {
		if parent, known := all[m.parent]; known && sameMemory(pid, m, m.parent, parent) {
			continue // it is about to execute a program: vfork(2)
		}
		p := part{own: m.own, shared: m.shared, stack: stack(pid)} // read first: the process may execute a program meanwhile
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

// still sums the parts of processes that still have the same memory.
func still(found map[int]part) (own, shared int64) {
	for pid, p := range found {
		if _, lives := memoryOf("/proc/" + strconv.Itoa(pid)); lives && stack(pid) == p.stack {
			own, shared = own+p.own, shared+p.shared
		}
	}
	return own, shared
}

// stack returns where a process's stack begins.
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

// memoryOf returns the memory of a process from world-readable files. If its first thread has ended, it
// reads another one.
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

// fields returns numbers from lines of a process's file, by name. It converts kB to bytes. A missing name
// is an error.
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

// openInMemory returns the size of the processes' open, unnamed files in memory: memfd_create(2).
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

// memoryDevice returns the device number of the file system of such files.
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
