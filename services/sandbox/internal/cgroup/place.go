package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// serviceGroup is the group into which the service moves all processes of its delegated group: a group of
// version 2 that delegates controllers must hold none.
const serviceGroup = "fairlead-service"

// place is the group of version 2 below which the service makes its own groups.
type place struct {
	dir string
	// delegated means that the group was delegated to the service: by systemd (`Delegate=yes`), or as the root
	// of a container.
	delegated bool
}

// findPlace finds the group that was delegated to the service: its own, or the parent if the service is in
// a subgroup already (as by systemd's `DelegateSubgroup=`). Otherwise it is the visible root: the
// machine's, where every process may be, or a container's, which the container may use.
//
// self is the content of /proc/self/cgroup.
func findPlace(root, self string) place {
	dir := ownGroup(root, self)
	for range 2 {
		if dir == root {
			break
		}
		if delegated(dir) {
			return place{dir, true}
		}
		dir = filepath.Dir(dir)
	}
	// Only the machine's own root has no type.
	return place{root, unix.Access(filepath.Join(root, "cgroup.type"), unix.F_OK) == nil}
}

// ownGroup returns the service's group; root if it is not visible.
func ownGroup(root, self string) string {
	for line := range strings.Lines(self) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			dir := filepath.Join(root, path) // a group outside of a namespace begins with `/..`
			if slices.Contains(members(dir), os.Getpid()) && strings.HasPrefix(dir, root) {
				return dir
			}
		}
	}
	return root
}

// delegated reports whether systemd has delegated a group to this user; a user's own service manager also
// has a delegated group.
func delegated(dir string) bool {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil || int(st.Uid) != os.Geteuid() {
		return false
	}
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		var value [2]byte
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// moveTries limits the search for processes that are still in a group. They may fork meanwhile, and the
// kernel may report a group as busy a moment longer.
const moveTries = 50

// open makes the group delegate its controllers. It moves the processes of a delegated group into a group
// below it.
func (p place) open() error {
	err := enable(p.dir)
	if !occupied(err) {
		return err
	}
	if !p.delegated {
		return fmt.Errorf("%w: processes %v are in it", err, members(p.dir))
	}
	below := filepath.Join(p.dir, serviceGroup)
	if err := makeGroup(below); err != nil {
		return err
	}
	for range moveTries {
		for _, pid := range members(p.dir) {
			if pid == 0 {
				return fmt.Errorf("%w: a process that cannot be seen from here is in it: run the service in a control group of its own", err)
			}
			if e := write(below, "cgroup.procs", strconv.Itoa(pid)); e != nil && !errors.Is(e, unix.ESRCH) { // it has ended
				return fmt.Errorf("move process %d out of the way of control groups: %w", pid, e)
			}
		}
		if err = enable(p.dir); !occupied(err) {
			return err
		}
		pause := time.NewTimer(time.Millisecond) // the kernel has no event for this
		<-pause.C
	}
	return err
}

// occupied reports whether an error means that a group has processes. The kernel returns EOPNOTSUPP if only
// the processor controller was delegated before, which is possible with processes in the group.
func occupied(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EOPNOTSUPP) }
