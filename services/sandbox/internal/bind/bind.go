// Package bind shows a folder of the host elsewhere, with fewer rights: as a mount outside all mount
// namespaces. The holder of its descriptor may look into it or attach it somewhere. The kernel refuses what
// the mount does not allow: writing if it is read-only, and always set-user-id programs and devices. File
// systems mounted below the folder are not part of it.
package bind

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// IDs are a user and a group of the host.
type IDs struct{ UID, GID int }

// Options of a clone.
type Options struct {
	Writable bool
	// Disk and Seen map owners: files of Disk appear as Seen's, and files made by Seen belong to Disk.
	// Other owners appear as the user nobody, and their files cannot be changed. If both are nil, owners
	// are not mapped.
	Disk, Seen *IDs
	// Maker keeps its own identity: it makes files and gives them to Seen. It may be nil.
	Maker *IDs
}

// Folder opens a folder by an absolute path in which no part is a link. The descriptor gives no right to
// read the folder.
func Folder(path string) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	return openat2(unix.AT_FDCWD, path, &how)
}

// Own opens a folder of the service's own. The path is trusted except for the last part, which must not be
// a link.
func Own(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Beneath opens a folder below another in the same way.
func Beneath(dir *os.File, path string) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	return openat2(int(dir.Fd()), path, &how)
}

func openat2(dir int, path string, how *unix.OpenHow) (*os.File, error) {
	for {
		fd, err := unix.Openat2(dir, path, how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// Clone makes such a mount of an open folder. It needs root. The mount ends with its descriptor unless it
// was attached.
func Clone(dir *os.File, o Options) (*os.File, error) {
	fd, err := unix.OpenTree(int(dir.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, &os.PathError{Op: "clone the mount of", Path: dir.Name(), Err: err}
	}
	tree := os.NewFile(uintptr(fd), dir.Name())
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if !o.Writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if o.Disk != nil && *o.Disk != *o.Seen {
		space, err := mapping(*o.Disk, *o.Seen, o.Maker)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("map the owner of %s: %w", dir.Name(), err), tree.Close())
		}
		defer func() { _ = space.Close() }()
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(space.Fd())
	}
	if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH, &attr); err != nil {
		if attr.Userns_fd != 0 {
			err = fmt.Errorf("its file system cannot show files as another user's (idmapped mounts): %w", err)
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", dir.Name(), err), tree.Close())
	}
	return tree, nil
}

// mapping returns a user namespace that maps disk to the host's seen, and maker, if set, to itself. The
// kernel needs a process for that: mapping stops one before its first instruction and ends it.
func mapping(disk, seen IDs, maker *IDs) (*os.File, error) {
	uids := []syscall.SysProcIDMap{{ContainerID: disk.UID, HostID: seen.UID, Size: 1}}
	gids := []syscall.SysProcIDMap{{ContainerID: disk.GID, HostID: seen.GID, Size: 1}}
	if maker != nil {
		uids = append(uids, syscall.SysProcIDMap{ContainerID: maker.UID, HostID: maker.UID, Size: 1})
		gids = append(gids, syscall.SysProcIDMap{ContainerID: maker.GID, HostID: maker.GID, Size: 1})
	}
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"mapping"}, Env: []string{}, Dir: "/", SysProcAttr: &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, Ptrace: true, Pdeathsig: syscall.SIGKILL,
		UidMappings: uids, GidMappings: gids,
	}}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	space, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // the error says that it was killed
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	return space, nil
}

// As runs f with only a user's rights to files: none of root's, and of no further group. Only f's thread
// has these rights, so f must not pass work to other threads. Negative ids leave the rights unchanged.
func As(who IDs, f func() error) error {
	if who.UID < 0 {
		return f()
	}
	answer := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine
		answer <- func() error {
			if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
				return fmt.Errorf("leave all groups: %w", e)
			}
			_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(who.GID), 0, 0) // these return the previous value, never an error
			_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(who.UID), 0, 0)
			if uid, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, ^uintptr(0), 0, 0); int(uid) != who.UID { // the current value
				return fmt.Errorf("take the rights of user %d", who.UID)
			}
			if gid, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, ^uintptr(0), 0, 0); int(gid) != who.GID {
				return fmt.Errorf("take the rights of group %d", who.GID)
			}
			return f()
		}()
	}()
	return <-answer
}
