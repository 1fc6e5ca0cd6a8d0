// Package cgroup bounds memory, processors and processes of a sandbox, and of a
// single command in it, with control groups, in either version of the kernel's
// interface.
//
// It makes groups only below one folder of its own, and touches no other group
// of the machine. A group belongs to one sandbox or command: it is made for it,
// and removed when nothing runs in it any more.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Root is where the kernel shows control groups.
const Root = "/sys/fs/cgroup"

// period of the processor quota, in microseconds.
const period = 100_000

// Limits of a group. Zero means no limit.
type Limits struct {
	MemoryBytes int64
	Processes   int64
	CPUs        float64 // processors' worth of time: 1.5 is one and a half
}

// Usage is what a group has used.
type Usage struct {
	CPU            time.Duration
	MaxMemoryBytes int64 // zero when the kernel does not tell
	OOMKills       int64 // processes that were killed for want of memory
}

// Counts tell how often, or how long, a group met its limits.
type Counts struct {
	OOMKills  int64         // processes killed for want of memory; in groups below left out
	Refused   int64         // processes and threads that were not made for there being too many
	Throttled time.Duration // that processes waited for processors beyond the group's share
}

// Since is what was counted after an earlier reading.
func (c Counts) Since(before Counts) Counts {
	return Counts{c.OOMKills - before.OOMKills, c.Refused - before.Refused, c.Throttled - before.Throttled}
}

// Hierarchy makes groups below one folder. It is safe for concurrent use.
type Hierarchy interface {
	// Name tells the version of the interface: `cgroup-v1` or `cgroup-v2`.
	Name() string
	// Below is the group in which the hierarchy's folder is, as the kernel names it: `/`
	// unless the service was given another one.
	Below() string
	// New makes a group with limits. An error leaves nothing behind.
	New(name string, l Limits) (Group, error)
	// Sweep kills what is left in this hierarchy's groups of an earlier process
	// and removes them.
	Sweep() error
	// Close removes the hierarchy's own folder; its groups must be gone.
	Close() error
}

// Group holds the processes of a sandbox, or of one command in it. It is safe for
// concurrent use.
type Group interface {
	// Add moves a process into the group, with all children it makes later.
	Add(pid int) error
	// Below makes a group for one command of a sandbox. The command is bounded by
	// both groups; without a limit of its own, processors are shared with the others
	// in the sandbox.
	Below(name string, l Limits) (Group, error)
	// Usage reads the counters; it may be called until Remove.
	Usage() Usage
	// Counts reads the counters of limits that were met. It is cheap.
	Counts() Counts
	// Limit sets the group's limits anew. Zero leaves one as it is.
	Limit(l Limits) error
	// Pids are the processes in the group, those in groups below left out.
	Pids() []int
	// Freeze stops every process of a sandbox, those in groups below as well, and
	// returns when all stand still. Thaw must be called afterwards, also on an error.
	Freeze(ctx context.Context) error
	// Thaw undoes Freeze.
	Thaw() error
	// Kill kills all processes in a command's group. None of them can make another
	// one in time. It does not wait for their end.
	Kill() error
	// Remove removes the group. It kills what is still in it.
	Remove() error
}

// Open finds the machine's control groups and makes the folder prefix in them,
// such as `fairlead/3f2a`. It says what is missing when they cannot be used.
//
// On version 2 the folder is in the group that was given to the service, if one was,
// and this process may find itself moved into a group beside it.
func Open(root, prefix string) (Hierarchy, error) {
	if isV2(root) {
		self, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return nil, fmt.Errorf("find the service's control group: %w", err)
		}
		return openV2(root, string(self), prefix)
	}
	return openV1(root, prefix)
}

func isV2(root string) bool {
	var st unix.Statfs_t
	return unix.Statfs(root, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

func write(dir, file, value string) error {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("set %s to %s: %w", file, value, err)
	}
	return nil
}

// readInt reads a file that holds one number; zero when it cannot.
func readInt(path string) int64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// readKey reads the number behind a key of a file of `key number` lines; zero
// when it cannot.
func readKey(path, key string) int64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	return findKey(string(raw), key)
}

// counter is a number behind a key that is read often: its file stays open from
// the first time on. It is read past the poller, which has nothing to wait for.
type counter struct {
	mu   sync.Mutex
	open bool
	fd   int
}

func (c *counter) read(path, key string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0
		}
		c.open, c.fd = true, fd
	}
	var raw [1024]byte
	n, _ := unix.Pread(c.fd, raw[:], 0) // these files come whole
	return findKey(string(raw[:max(n, 0)]), key)
}

func (c *counter) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open {
		_ = unix.Close(c.fd)
		c.open = false
	}
}

func findKey(text, key string) int64 {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || k != key {
			continue
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// groupPids are the processes in a group of a sandbox.
func groupPids(dir string) []int {
	return slices.DeleteFunc(members(dir), func(pid int) bool { return pid <= 1 })
}

// members are the processes in a group; 0 stands for each that cannot be seen from here.
func members(dir string) []int {
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, f := range strings.Fields(string(raw)) {
		if pid, err := strconv.Atoi(f); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// await waits until something that the kernel has no event for is done.
func await(ctx context.Context, what string, done func() bool) error {
	for wait := 100 * time.Microsecond; !done(); wait = min(2*wait, 10*time.Millisecond) {
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%s a control group: %w", what, ctx.Err())
		case <-pause.C:
		}
	}
	return nil
}

// removeGroup kills what is in a group and in those below, and removes them. A
// process that was killed stays in its group until it has ended, so this tries for
// a while.
func removeGroup(dir string) error {
	if unix.Rmdir(dir) == nil {
		return nil
	}
	if err := sweep(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_ = write(dir, "cgroup.kill", "1") // version 2 has it, and no fork escapes it
	deadline := time.Now().Add(5 * time.Second)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		for _, pid := range groupPids(dir) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
		pause := time.NewTimer(wait) // the kernel has no event for this on version 1
		<-pause.C
	}
}

// sweep removes every group below dir.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list control groups: %w", err)
	}
	var faults []error
	for _, e := range entries {
		if e.IsDir() {
			faults = append(faults, removeGroup(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(faults...)
}

// removeFolder removes a hierarchy's own folder, and the folder above it when no
// other instance has one there.
func removeFolder(dir, prefix string) error {
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove control group %s: %w", dir, err)
	}
	if strings.Contains(prefix, "/") {
		_ = unix.Rmdir(filepath.Dir(dir)) // fails while others use it
	}
	return nil
}
