package warm

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Deleted implements box.Process. It looks with the credentials of the sandbox's
// owner, whose processes these are, so that it needs no privilege. A file that is
// only mapped into memory is not seen. What a command holds that runs beside this
// one counts for both.
func (p *process) Deleted() int64 {
	var total int64
	_ = As(p.sb.spec.Owner, func() error {
		total = deleted(p.sb.init, p.sb.device)
		return nil
	})
	return total
}

// deleted adds up the files of a file system that have no name any more
// and are open in the process namespace of init.
func deleted(init int, device uint64) int64 {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", init))
	if err != nil {
		return 0
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	var total int64
	seen := map[uint64]bool{}
	for _, d := range processes {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		dir := "/proc/" + d.Name()
		if other, err := os.Readlink(dir + "/ns/pid"); err == nil && other == space {
			total += deletedBy(dir+"/fd", device, seen)
		}
	}
	return total
}

// deletedBy adds up what one process has open and was not seen before.
func deletedBy(dir string, device uint64, seen map[uint64]bool) int64 {
	f, err := os.Open(dir)
	if err != nil {
		return 0 // it ended
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	var total int64
	for _, name := range names {
		var st unix.Stat_t
		if unix.Stat(dir+"/"+name, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 {
			continue
		}
		if uint64(st.Dev) == device && !seen[st.Ino] { //nolint:unconvert // the type is the architecture's
			seen[st.Ino] = true
			total += st.Blocks * 512
		}
	}
	return total
}
