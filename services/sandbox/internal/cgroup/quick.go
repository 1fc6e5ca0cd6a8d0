package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
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
		return fmt.Errorf("set how quick moves between control groups are (the mount option favordynmods of cgroup2, which needs Linux 6.0 and root, outside of containers): %w", err)
	}
	return nil
}

// favorMoves makes a mount with the option, or without, that appears nowhere. A mount sets
// all options anew, for all mounts: the others are given as they are.
func favorMoves(on bool) (err error) {
	options, err := mountOptions()
	if err != nil {
		return err
	}
	fd, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	for _, o := range kept {
		if slices.Contains(options, o) {
			if err := unix.FsconfigSetFlag(fd, o); err != nil {
				return err
			}
		}
	}
	if on {
		if err := unix.FsconfigSetFlag(fd, favor); err != nil {
			return err
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return err
	}
	// In a control group namespace the kernel takes no notice.
	after, err := mountOptions()
	if err == nil && len(after) > 0 && slices.Contains(after, favor) != on {
		err = errors.New("the kernel did not do it")
	}
	return err
}

const favor = "favordynmods"

// kept are the other options of cgroup2. nsdelegate keeps containers in their place.
var kept = []string{"nsdelegate", "memory_localevents", "memory_recursiveprot", "memory_hugetlb_accounting", "pids_localevents"}

// MovesFavored tells how the machine is set; false, too, where no cgroup2 is
// mounted that would show it.
func MovesFavored() (bool, error) {
	options, err := mountOptions()
	return slices.Contains(options, favor), err
}

// mountOptions are those of cgroup2, which all its mounts have in common; none where it is
// not mounted.
func mountOptions() ([]string, error) {
	raw, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 3 && f[2] == "cgroup2" {
			return strings.Split(f[3], ","), nil
		}
	}
	return nil, nil
}
