package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// FavorMoves makes the kernel move processes between control groups quickly, at a small cost to every fork
// and exit on the machine, or undoes that: the mount option `favordynmods` (Linux 6.0). Without it a move
// waits for all processors, several milliseconds. The setting is for the whole machine, in either version
// of control groups, and lasts until it is changed or the machine restarts.
func FavorMoves(on bool) error {
	if err := favorMoves(on); err != nil {
		return fmt.Errorf("set the mount option favordynmods of cgroup2 (it needs Linux 6.0 and root, outside of containers): %w", err)
	}
	return nil
}

// favorMoves makes a detached mount with or without the option. A mount sets all options for all mounts, so
// the others are passed unchanged.
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
	// In a control group namespace the kernel ignores it.
	after, err := mountOptions()
	if err == nil && len(after) > 0 && slices.Contains(after, favor) != on {
		err = errors.New("the kernel did not do it")
	}
	return err
}

const favor = "favordynmods"

// kept are the other options of cgroup2. nsdelegate confines containers.
var kept = []string{"nsdelegate", "memory_localevents", "memory_recursiveprot", "memory_hugetlb_accounting", "pids_localevents"}

// MovesFavored reports the machine's setting; it is also false if no cgroup2 mount shows it.
func MovesFavored() (bool, error) {
	options, err := mountOptions()
	return slices.Contains(options, favor), err
}

// mountOptions returns the options of cgroup2, which all its mounts share; none if it is not mounted.
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
