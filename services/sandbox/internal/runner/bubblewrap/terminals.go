package bubblewrap

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// boundTerminals bounds the pseudo-terminals of a sandbox whose first process, of which
// it takes a descriptor, runs. Bubblewrap has no option for it, and it needs root.
func boundTerminals(init int) error {
	options := fmt.Sprintf("mode=620,ptmxmode=666,max=%d", rootfs.Terminals)
	err := inMounts(init, func() error {
		return unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NOEXEC, options)
	})
	if err != nil {
		return fmt.Errorf("bound the sandbox's terminals: %w", err)
	}
	return nil
}

// inMounts runs a function in the mount namespace of a process, on a thread that ends
// with it: there is no way back to fail.
func inMounts(pidfd int, f func() error) error {
	answer := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(pidfd, unix.CLONE_NEWNS)
		}
		if err == nil {
			err = f()
		}
		answer <- err
	}()
	return <-answer
}
