package bind

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// In runs a function in the mount namespace of a process, of which it takes a
// descriptor (pidfd): paths are what they are there. The thread that it runs on ends
// with it, for there is no way back that could not fail. It needs root.
func In(process int, f func() error) error {
	answer := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(process, unix.CLONE_NEWNS)
		}
		if err == nil {
			err = f()
		}
		answer <- err
	}()
	return <-answer
}

// Onto puts a mount that is nowhere yet over an open folder, for as long as the
// folder's mount namespace lasts. Call it in that namespace.
func Onto(folder, tree *os.File) error {
	err := unix.MoveMount(int(tree.Fd()), "", int(folder.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return &os.PathError{Op: "mount over", Path: folder.Name(), Err: err}
	}
	return nil
}
