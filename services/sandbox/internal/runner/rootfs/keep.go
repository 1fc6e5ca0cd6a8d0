package rootfs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Keep unmounts, in the stage's namespace, every mount that neither leads to one of the paths nor lies
// below one: bubblewrap reads the list of all mounts for each one that it makes. A mount that cannot be
// removed stays.
func (g *Stage) Keep(paths []string) error {
	return g.thread.Do(func() error {
		raw, err := os.ReadFile("/proc/thread-self/mountinfo")
		if err != nil {
			return fmt.Errorf("list the stage's mounts: %w", err)
		}
		points := mountPoints(string(raw))
		for _, at := range slices.Backward(points) { // later ones may lie on earlier ones
			if at == "/" || coversPath(at, append(paths, g.dir)) {
				continue
			}
			err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EPERM) {
				return &os.PathError{Op: "unmount on the stage", Path: at, Err: err}
			}
		}
		return nil
	})
}

// coversPath reports whether a mount leads to one of the paths, or lies below it.
func coversPath(at string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return at == p || strings.HasPrefix(p, at+"/") || strings.HasPrefix(at, p+"/")
	})
}

// mountPoints returns the mount points of a list in the format of proc(5), in its order. It leaves out
// those with characters that the format escapes.
func mountPoints(list string) (points []string) {
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 4 && !strings.Contains(f[4], `\`) {
			points = append(points, f[4])
		}
	}
	return points
}
