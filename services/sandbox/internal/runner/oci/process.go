package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processes returns the processes that work for, or make, a container with its own kernel: their command
// line names its bundle. Another user's process may name it too, but does not run as a user of the runtime.
func (m *maker) processes(name string) (all []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is ours
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && m.worksFor(pid, name) {
			all = append(all, pid)
		}
	}
	return all
}

// worksFor reports whether a live process is one of a container's processes.
func (m *maker) worksFor(pid int, name string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	words := strings.Split(string(raw), "\x00")
	return (slices.Contains(words, m.bundle(name)) || slices.Contains(words, "--bundle="+m.bundle(name))) && m.isOurs(pid)
}

// isOurs reports whether a process belongs to root, or to the user that is root in containers.
func (m *maker) isOurs(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, uids, _ := strings.Cut(string(raw), "\nUid:\t")
	uid, _, _ := strings.Cut(uids, "\t")
	return uid == "0" || uid == strconv.Itoa(m.setup)
}

// end kills the processes of a container and waits until they have ended. A runtime that was killed while
// it made a container does not know its processes.
func (m *maker) end(name string) error {
	deadline := time.Now().Add(m.patience)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		all := m.processes(name)
		if len(all) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("container %s: processes %v do not end", name, all)
		}
		for _, pid := range all {
			m.kill(pid, name)
		}
		<-time.After(wait) // the kernel has no event for it
	}
}

// kill kills a process if it is still a container's, and its pid is not reused.
func (m *maker) kill(pid int, name string) {
	held, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(held) }()
	if m.worksFor(pid, name) {
		_ = unix.PidfdSendSignal(held, unix.SIGKILL, nil, 0)
	}
}
