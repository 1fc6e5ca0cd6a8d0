package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// FavorMoves has the kernel make moves of processes between control groups quick,
// at a little cost to every fork and exit on the machine, or not: its mount option
// `favordynmods` (Linux 6.0). Without it a move waits for all processors, several
// milliseconds. The setting is the whole machine's, in either version of control
// groups, and stays until it is changed or the machine starts again.
func FavorMoves(on bool) error {
	if err := favorMoves(on); err != nil {
		return fmt.Errorf("set how quick moves between control groups are (the mount option favordynmods of cgroup2, which needs Linux 6.0 and root): %w", err)
	}
	return nil
}

// favorMoves makes a mount with the option, or without, that appears nowhere.
func favorMoves(on bool) (err error) {
	fd, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if on {
		if err := unix.FsconfigSetFlag(fd, "favordynmods"); err != nil {
			return err
		}
	}
	return unix.FsconfigCreate(fd)
}

// MovesFavored tells how the machine is set; false, too, where no cgroup2 is
// mounted that would show it.
func MovesFavored() (bool, error) {
	raw, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 3 && f[2] == "cgroup2" && strings.Contains(f[3], "favordynmods") {
			return true, nil
		}
	}
	return false, nil
}
