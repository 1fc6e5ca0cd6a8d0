package held

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inMemory is what a process has in memory, in bytes: its own, also what of it is swapped out, and what it
// has mapped of files in memory.
type inMemory struct {
	own, shared int64
	parent      int
	dir         string // of the thread that tells
}

// Memory adds up what processes have in memory, in bytes: what is their own, and what they have mapped of files in
// memory. While all of it together is no more than a limit, a page that several have counts for each:
// that is quick to learn. Beyond, such a page counts once. It looks by as, as whoever may look into them. Of a process that lets
// nobody look into it, all counts.
func Memory(as func(func() error) error, pids []int, limit int64) (own, shared int64) {
	all := make(map[int]inMemory, len(pids))
	for _, pid := range pids {
		if m, ok := memoryOf("/proc/" + strconv.Itoa(pid)); ok {
			all[pid] = m
			own, shared = own+m.own, shared+m.shared
		}
	}
	if own+shared <= limit {
		return own, shared
	}
	_ = as(func() error {
		own, shared = shares(all)
		return nil
	})
	return own, shared
}

// shares adds up what processes have in memory, where a page that several have counts once. They are looked at one after
// the other: what one had a part of that ended meanwhile, or executed something, counts with those that have all of it since.
func shares(all map[int]inMemory) (own, shared int64) {
	return still(parts(all))
}

// part is what a process has in memory, with its part of what it shares.
type part struct {
	own, shared int64
	stack       string // where that begins, which is elsewhere in each program that it executes; empty: not to be known
}

// parts are those of processes.
func parts(all map[int]inMemory) map[int]part {
	found := make(map[int]part, len(all))
	for pid, m := range all {
		if _, known := all[m.parent]; known && sameMemory(pid, m.parent) {
			continue // it is about to execute something: vfork(2)
		}
		p := part{own: m.own, shared: m.shared, stack: stack(pid)} // before the look: it may execute something in that
		sum, err := fields(m.dir+"/smaps_rollup", "Pss_Anon:", "SwapPss:", "Pss_Shmem:")
		switch {
		case err == nil:
			p.own, p.shared = sum[0]+sum[1], sum[2]
		case ended(err):
			continue
		}
		found[pid] = p
	}
	return found
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
	sum, err := fields(dir+"/status", "RssAnon:", "VmSwap:", "RssShmem:", "PPid:")
	if err != nil {
		return m, false
	}
	return inMemory{own: sum[0] + sum[1], shared: sum[2], parent: int(sum[3]), dir: dir}, true
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

// sameMemory says whether two processes have one memory: kcmp(2), KCMP_VM. That is not known where they let nobody
// look at them.
func sameMemory(a, b int) bool {
	const vm = 1
	differ, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), vm, 0, 0, 0)
	return e == 0 && differ == 0
}

// memoryDevice is the number of the file system in which files are that are made in memory without a name: memfd_create(2).
func memoryDevice() (uint64, error) {
	fd, err := unix.MemfdCreate("device", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return uint64(st.Dev), err //nolint:unconvert // the type is the architecture's
}
