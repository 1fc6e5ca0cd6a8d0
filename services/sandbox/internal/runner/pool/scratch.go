package pool

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// scratchBytes returns the size of files in the sandbox's /tmp and /dev/shm; zero for a sandbox elsewhere.
func (s *sandbox) scratchBytes() (bytes int64) {
	if s.elsewhere() {
		return 0
	}
	for _, dir := range []string{"tmp", "dev/shm"} {
		var st unix.Statfs_t
		if err := unix.Statfs(fmt.Sprintf("/proc/%d/root/%s", s.hold.pid, dir), &st); err == nil && st.Type == unix.TMPFS_MAGIC {
			bytes += int64(st.Blocks-st.Bfree) * st.Bsize
		}
	}
	return bytes
}
