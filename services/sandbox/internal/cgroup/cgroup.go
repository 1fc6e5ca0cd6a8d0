// Package cgroup bounds memory, processors and processes of a command with
// control groups, in either version of the kernel's interface.
//
// It makes groups only below one folder of its own, and touches no other group
// of the machine. A group belongs to one command: it is made for it, and removed
// when nothing runs in it any more.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// Hierarchy makes groups below one folder. It is safe for concurrent use.
type Hierarchy interface {
	// Name tells the version of the interface: `cgroup-v1` or `cgroup-v2`.
	Name() string
	// New makes a group with limits. An error leaves nothing behind.
	New(name string, l Limits) (Group, error)
	// Sweep kills what is left in this hierarchy's groups of an earlier process
	// and removes them.
	Sweep() error
	// Close removes the hierarchy's own folder; its groups must be gone.
	Close() error
}

// Group holds the processes of one command.
type Group interface {
	// Add moves a process into the group, with all children it makes later.
	Add(pid int) error
	// Usage reads the counters; it may be called until Remove.
	Usage() Usage
	// Remove removes the group. It kills what is still in it.
	Remove() error
}

// Open finds the machine's control groups and makes the folder prefix in them,
// such as `fairlead/3f2a`. It says what is missing when they cannot be used.
func Open(root, prefix string) (Hierarchy, error) {
	if isV2(root) {
		return openV2(root, prefix)
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
	for line := range strings.Lines(string(raw)) {
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

func groupPids(dir string) []int {
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, f := range strings.Fields(string(raw)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeGroup kills what is in a group and removes it. A process that was killed
// stays in its group until it has ended, so this tries for a while.
func removeGroup(dir string) error {
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

// sweep removes every group directly below dir.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list control groups of an earlier run: %w", err)
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
