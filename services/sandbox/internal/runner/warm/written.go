package warm

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// Written implements box.Process. It reads what the kernel counts for each process, with the credentials of
// the owner of the sandbox's namespaces. Processes of another machine do not count.
func (p *process) Written() (bytes int64) {
	s := p.sb
	holder := s.holder()
	if holder == 0 {
		return 0
	}
	_ = s.as(func() error {
		for _, pid := range Namespace(holder) {
			if pid != holder {
				bytes += writtenBy(pid)
			}
		}
		return nil
	})
	return bytes + max(s.writtenByFirst(holder)-s.reaped.Load(), 0)
}

// rememberReaped remembers what the sandbox's first process has written while no command runs. The kernel
// counts reaped processes for the one that reaps them: that is init for orphans and for ended commands.
func (s *sandbox) rememberReaped() {
	if holder := s.holder(); holder != 0 {
		s.reaped.Store(s.writtenByFirst(holder))
	}
}

// writtenByFirst is writtenBy of the sandbox's first process. Its files in /proc belong to root, because it
// hides its memory. So the service opens its file itself; without root it cannot, and the result is zero.
func (s *sandbox) writtenByFirst(holder int) (bytes int64) {
	f, err := os.Open(ioFile(holder))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	_ = s.as(func() error {
		bytes = writtenIn(f)
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

// holder returns a process in the process namespace of the sandbox; zero if the sandbox is on another
// machine.
func (s *sandbox) holder() int {
	if s.init != 0 {
		return s.init
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.body.(Holder); ok {
		return h.Holder()
	}
	return 0
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

// writtenBy returns how many bytes a process and its reaped children have written to disks; zero if that
// may not be read.
func writtenBy(pid int) int64 {
	f, err := os.Open(ioFile(pid))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	return writtenIn(f)
}

// writtenIn is writtenBy for a process's open file of counts.
func writtenIn(f *os.File) int64 {
	text, err := io.ReadAll(f)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if v, ok := bytes.CutPrefix(line, []byte("write_bytes: ")); ok {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
			return n
		}
	}
	return 0
}
