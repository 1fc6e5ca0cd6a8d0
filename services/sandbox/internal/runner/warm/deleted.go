package warm

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Deleted implements box.Process. It looks with the credentials of whom the
// sandbox's namespaces belong to, so that it needs no privilege. What a command
// holds that runs beside this one counts for both.
//
// A file that is only mapped into memory, and not open, counts with its size on the
// disk where the service is root, and otherwise with as much of it as is mapped.
// One that is under way in a local socket is not seen, nor is any of a sandbox that
// is on another machine.
func (p *process) Deleted() int64 {
	holder := p.sb.holder()
	if holder == 0 {
		return 0
	}
	h := held{device: p.sb.device, seen: map[uint64]bool{}}
	who := p.sb.spec.Owner
	if p.sb.r.own {
		who = box.Self
	}
	_ = As(who, func() error {
		h.find(holder)
		return nil
	})
	for _, m := range h.mapped {
		if !h.seen[m.inode] {
			h.seen[m.inode] = true
			h.total += m.size()
		}
	}
	return h.total
}

// holder is a process of the namespace whose processes hold the sandbox's files; zero when
// it is not on this machine.
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

// held adds up the files of a file system that have no name any more and are in use.
type held struct {
	device uint64
	seen   map[uint64]bool // inodes that were counted
	total  int64           // bytes
	mapped []mapping       // those found in memory
}

// mapping is a deleted file that is mapped into memory.
type mapping struct {
	file   string // which only root may look at
	inode  uint64
	length int64 // of the part that is mapped
}

func (m mapping) size() int64 {
	var st unix.Stat_t
	if unix.Stat(m.file, &st) != nil || st.Ino != m.inode {
		return m.length
	}
	if st.Nlink > 0 {
		return 0 // what its name says, and not the kernel
	}
	return st.Blocks * 512
}

// find looks at every process of the process namespace of init.
func (h *held) find(init int) {
	for _, pid := range Namespace(init) {
		dir := "/proc/" + strconv.Itoa(pid)
		h.open(dir + "/fd")
		h.maps(dir)
	}
}

// Namespace is all processes of the process namespace that one is in.
func Namespace(of int) (all []int) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", of))
	if err != nil {
		return nil
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, d := range processes {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if other, err := os.Readlink("/proc/" + d.Name() + "/ns/pid"); err == nil && other == space {
			all = append(all, pid)
		}
	}
	return all
}

// open adds up what one process has open and was not seen before.
func (h *held) open(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return // it ended
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Stat(dir+"/"+name, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 {
			continue
		}
		if uint64(st.Dev) == h.device && !h.seen[st.Ino] { //nolint:unconvert // the type is the architecture's
			h.seen[st.Ino] = true
			h.total += st.Blocks * 512
		}
	}
}

// maps notes what one process has mapped.
func (h *held) maps(dir string) {
	f, err := os.Open(dir + "/maps")
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if m, ok := parseMapping(lines.Text(), h.device); ok {
			m.file = dir + "/map_files/" + m.file
			h.mapped = append(h.mapped, m)
		}
	}
}

// parseMapping reads a line of a process's maps; ok when it is a deleted file of the
// device.
func parseMapping(line string, device uint64) (m mapping, ok bool) {
	fields := strings.Fields(line) // addresses, rights, offset, device, inode, name
	if len(fields) < 6 || !strings.HasSuffix(line, " (deleted)") {
		return m, false
	}
	if fields[3] != fmt.Sprintf("%02x:%02x", unix.Major(device), unix.Minor(device)) {
		return m, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	begin, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	inode, err3 := strconv.ParseUint(fields[4], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return m, false
	}
	// As map_files has it: without leading zeroes.
	return mapping{file: fmt.Sprintf("%x-%x", begin, end), inode: inode, length: int64(end - begin)}, true
}
