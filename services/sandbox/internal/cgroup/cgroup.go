// Package cgroup limits memory, processors and processes of a sandbox, and of a single command in it, with
// control groups, in either version of the kernel's interface.
//
// It makes groups only below one folder of its own and touches no other group of the machine. A group
// belongs to one sandbox or command. It is removed when nothing runs in it any more.
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
	MaxMemoryBytes int64 // zero if the kernel does not report it
	OOMKills       int64 // processes that were killed for want of memory
}

// Counts are how often, or how long, a group met its limits.
type Counts struct {
	OOMKills  int64         // processes killed for want of memory, without groups below
	Refused   int64         // processes and threads that were not made because there were too many
	Throttled time.Duration // that processes waited for processors beyond the group's share
}

// Since returns the difference to an earlier reading.
func (c Counts) Since(before Counts) Counts {
	return Counts{c.OOMKills - before.OOMKills, c.Refused - before.Refused, c.Throttled - before.Throttled}
}

// Hierarchy makes groups below one folder. It is safe for concurrent use.
type Hierarchy interface {
	// Name returns the version of the interface: `cgroup-v1` or `cgroup-v2`.
	Name() string
	// Below returns the parent group of the hierarchy's folder, as the kernel names it: `/` unless another
	// group was delegated to the service.
	Below() string
	// New makes a group with limits. An error leaves nothing behind.
	New(name string, l Limits) (Group, error)
	// Sweep kills the remains of an earlier process in this hierarchy's groups and removes the groups.
	Sweep() error
	// Close removes the hierarchy's own folder; its groups must be gone.
	Close() error
}

// Group holds the processes of a sandbox, or of one command in it. It is safe for
// concurrent use.
type Group interface {
	// Add moves a process into the group, with all children it makes later.
	Add(pid int) error
	// Below makes a group for one command of a sandbox. Both groups limit the command. Without its own
	// limit, the command shares the sandbox's processors.
	Below(name string, l Limits) (Group, error)
	// Usage reads the counters; it may be called until Remove.
	Usage() Usage
	// Counts reads the counters of the limits. It is cheap.
	Counts() Counts
	// Limit changes the group's limits. Zero leaves a limit unchanged.
	Limit(l Limits) error
	// Pids returns the processes in the group, without groups below.
	Pids() []int
	// Freeze stops all processes of a sandbox, also in groups below, and returns when all have stopped. The
	// caller must call Thaw afterwards, also after an error.
	Freeze(ctx context.Context) error
	// Thaw undoes Freeze.
	Thaw() error
	// Kill kills all processes in a command's group; none can escape by a fork. It does not wait for their
	// end.
	Kill() error
	// Remove removes the group and kills all processes that are still in it.
	Remove() error
}

// Open finds the machine's control groups and makes the folder prefix in them, such as `fairlead/3f2a`. The
// error names what is missing.
//
// On version 2 the folder is in the group that was delegated to the service, if there is one. Open may then
// move this process into a group beside the folder.
func Open(root, prefix string) (h Hierarchy, err error) {
	for range openAttempts {
		if h, err = openOnce(root, prefix); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return h, err
}

// openAttempts is how often Open tries: another instance that ends may remove the folder above, which both
// share, before the instance's own folder is in it.
const openAttempts = 20

func openOnce(root, prefix string) (Hierarchy, error) {
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

// readInt reads a file that holds one number; zero on failure.
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

// readKey reads the number for a key in a file of `key number` lines; zero on failure.
func readKey(path, key string) int64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	return findKey(string(raw), key)
}

// counter is a number for a key that is read often, so its file stays open. It is read without the poller,
// which has nothing to wait for.
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
	n, _ := unix.Pread(c.fd, raw[:], 0) // such a file is read at once
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

// groupPids returns the processes in a group of a sandbox.
func groupPids(dir string) []int {
	return slices.DeleteFunc(members(dir), func(pid int) bool { return pid <= 1 })
}

// members returns the processes in a group; 0 stands for each that is not visible here.
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

// await polls until a condition holds for which the kernel has no event.
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

// removeGroup kills all processes in a group and in the groups below, and removes the groups. A killed
// process stays in its group until it has ended, so removeGroup retries for a while.
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

// removeFolder removes a hierarchy's own folder, and the parent folder unless another instance uses it.
func removeFolder(dir, prefix string) error {
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove control group %s: %w", dir, err)
	}
	if strings.Contains(prefix, "/") {
		_ = unix.Rmdir(filepath.Dir(dir)) // fails while others use it
	}
	return nil
}
