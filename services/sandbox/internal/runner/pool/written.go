package pool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
)

// chunk is how many files of counts are open at once.
const chunk = 64

// writeCount counts what the processes of a sandbox have written to disks. It is safe for concurrent use.
type writeCount struct {
	as func(f func() error) error // runs f with power over the sandbox's namespaces
	// reaped is what the sandbox's first process had written, by itself and for reaped processes, when the
	// sandbox was last without a command.
	reaped atomic.Int64
}

// Written implements box.Process. It reads what the kernel counts for each process. Processes of another
// machine do not count.
func (p *process) Written() (bytes int64) {
	holder := p.sb.hold.holder()
	if holder == 0 {
		return 0
	}
	return p.sb.written.since(holder)
}

// since returns what was written since remember. holder is the sandbox's first process.
func (w *writeCount) since(holder int) (bytes int64) {
	for some := range slices.Chunk(w.below(holder), chunk) {
		bytes += w.by(some...)
	}
	return bytes + max(w.by(holder)-w.reaped.Load(), 0)
}

// remember remembers what the sandbox's first process has written while no command runs. The kernel
// counts reaped processes for the one that reaps them: that is init for orphans and for ended commands.
func (w *writeCount) remember(holder int) {
	if holder != 0 {
		w.reaped.Store(w.by(holder))
	}
}

// below returns the other processes of a sandbox: those that descend from its first one, or on a kernel that
// does not list children, those in its process namespace.
func (w *writeCount) below(holder int) (all []int) {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err == nil {
		return descendants(holder)
	}
	_ = w.as(func() error {
		all = slices.DeleteFunc(Namespace(holder), func(pid int) bool { return pid == holder })
		return nil
	})
	return all
}

// descendants returns the processes that descend from a process. Processes that start meanwhile may be missing.
func descendants(of int) (all []int) {
	seen := map[int]bool{of: true}
	for next := []int{of}; len(next) > 0; next = next[1:] {
		threads, _ := filepath.Glob("/proc/" + strconv.Itoa(next[0]) + "/task/*/children")
		for _, thread := range threads {
			children, _ := os.ReadFile(thread)
			for child := range bytes.FieldsSeq(children) {
				if pid, err := strconv.Atoi(string(child)); err == nil && !seen[pid] {
					seen[pid] = true
					next, all = append(next, pid), append(all, pid)
				}
			}
		}
	}
	return all
}

// by returns how many bytes processes and their reaped children have written to disks. Those that may
// not be read do not count. The file of a process that hides its memory, like init, belongs to root; others
// belong to the owner. To read either one needs power over the sandbox's namespaces, which the owner has.
func (w *writeCount) by(pids ...int) (bytes int64) {
	denied := map[int]*os.File{} // nil for one that could not be opened
	for _, pid := range pids {
		f, err := os.Open(ioFile(pid))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			n, err := writtenIn(f)
			bytes += n
			if err == nil {
				_ = f.Close()
				continue
			}
		}
		denied[pid] = f
	}
	if len(denied) == 0 {
		return bytes
	}
	_ = w.as(func() error {
		for pid, f := range denied {
			if f == nil {
				f, _ = os.Open(ioFile(pid))
			}
			n, _ := writtenIn(f) // an error means that it has ended, or stays hidden
			bytes += n
			_ = f.Close()
		}
		return nil
	})
	return bytes
}

// as runs f with the credentials of the owner of the sandbox's namespaces.
func (s *sandbox) as(f func() error) error {
	if s.r.own {
		return f()
	}
	return As(s.spec.Owner, f)
}

// Namespace returns the processes in the process namespace of a process that the caller may inspect; none
// if that process has ended.
func Namespace(of int) (all []int) {
	space, err := spaceOf(strconv.Itoa(of))
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, d := range entries {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if other, err := spaceOf(d.Name()); err == nil && other == space {
			all = append(all, pid)
		}
	}
	return all
}

func spaceOf(process string) (string, error) { return os.Readlink("/proc/" + process + "/ns/pid") }

func ioFile(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/io" }

// writtenIn reads the number of written bytes from a process's file of counts.
func writtenIn(f *os.File) (int64, error) {
	text, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if v, ok := bytes.CutPrefix(line, []byte("write_bytes: ")); ok {
			return strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
		}
	}
	return 0, nil
}
