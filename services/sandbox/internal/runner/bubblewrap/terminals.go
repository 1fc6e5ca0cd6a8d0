package bubblewrap

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// boundTerminals bounds the pseudo-terminals of a sandbox whose first process runs, of
// which it takes a descriptor as well. Bubblewrap has no option for it, and it needs
// root.
func boundTerminals(init, pidfd int) error {
	if err := reconfigureTerminals(init, pidfd); err != nil {
		return fmt.Errorf("bound the sandbox's terminals: %w", err)
	}
	return nil
}

// reconfigureTerminals does not go where the terminals are: that takes a thread of its
// own, and a good part of a millisecond.
func reconfigureTerminals(init, pidfd int) error {
	at, err := unix.Open("/proc/"+strconv.Itoa(init)+"/root/dev/pts", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Statfs_t
	if err := unix.Fstatfs(at, &st); err != nil || st.Type != unix.DEVPTS_SUPER_MAGIC {
		return fmt.Errorf("there are none: %w", unix.ENOENT)
	}
	// It is that process's root, and nobody's who has its number since.
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	fs, err := unix.Fspick(at, "", unix.FSPICK_EMPTY_PATH|unix.FSPICK_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("fspick", err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, x := range [][2]string{{"mode", "620"}, {"ptmxmode", "666"}, {"max", strconv.Itoa(box.MaxTerminals)}} {
		if err := unix.FsconfigSetString(fs, x[0], x[1]); err != nil {
			return fmt.Errorf("set %s to %s: %w", x[0], x[1], err)
		}
	}
	return os.NewSyscallError("fsconfig", unix.FsconfigReconfigure(fs))
}
