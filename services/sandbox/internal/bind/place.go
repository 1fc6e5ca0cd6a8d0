package bind

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// In runs a function in the mount namespace of a process, given by a descriptor (pidfd): paths are those of
// that namespace. Its thread ends with it, because switching back could fail. It needs root.
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

// Onto attaches a detached mount over an open folder, for as long as the folder's mount namespace lasts.
// Call it in that namespace.
func Onto(folder, tree *os.File) error {
	err := unix.MoveMount(int(tree.Fd()), "", int(folder.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return &os.PathError{Op: "mount over", Path: folder.Name(), Err: err}
	}
	return nil
}

// Make makes a mount of a new file system of a kind, with its options (key and value) and the mount's
// attributes (MOUNT_ATTR_…). The caller owns the descriptor.
func Make(kind string, options [][2]string, attributes int) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make a file system, %s: %w", kind, err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, x := range options {
		if err := unix.FsconfigSetString(fs, x[0], x[1]); err != nil {
			return -1, fmt.Errorf("set %s of a file system, %s, to %s: %w", x[0], kind, x[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("make a file system, %s: %w", kind, err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return -1, fmt.Errorf("mount a file system, %s: %w", kind, err)
	}
	return mount, nil
}

// Memory makes a mount of a new, empty file system in memory, whose root belongs to a user.
func Memory(bytes int64, mode uint32, owner IDs) (*os.File, error) {
	fd, err := Make("tmpfs", [][2]string{
		{"size", strconv.FormatInt(bytes, 10)}, {"mode", strconv.FormatUint(uint64(mode), 8)},
		{"uid", strconv.Itoa(owner.UID)}, {"gid", strconv.Itoa(owner.GID)},
	}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "memory"), nil
}

// Close makes a mount read-only for all processes. It is final where no process may change mounts.
func Close(mount *os.File) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(int(mount.Fd()), "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("close %s to changes: %w", mount.Name(), err)
	}
	return nil
}
