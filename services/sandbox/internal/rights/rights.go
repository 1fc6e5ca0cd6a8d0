// Package rights lets the service work on files whose owner has removed its own rights to them. If the
// service has the same user, the kernel refuses it too.
//
// Files of commands keep their modes: the service takes rights temporarily and restores the mode. The
// sandbox's own folders always keep all rights of their owner.
package rights

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Modes.
const (
	bits = 0o7777
	// identities are set-user-id and set-group-id.
	identities = 0o6000
	search     = 0o100
	// own is what an owner may always do with a sandbox's own folder.
	own = 0o700
)

// Keep ensures that the owner of a folder has all rights to it. The folder is a sandbox's own, which every
// command needs, and a command may have closed it. name is resolved in dir; empty means dir itself.
func Keep(dir int, name string) error {
	_, err := keep(dir, name)
	return err
}

// keep is Keep, and reports whether a right was missing.
func keep(dir int, name string) (missing bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	if st.Mode&own == own {
		return false, nil
	}
	if name != "" {
		at, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return true, err
		}
		defer func() { _ = unix.Close(at) }()
		dir = at
	}
	return true, unix.Chmod(link(dir), st.Mode&bits|own)
}

// A folder that a command repeatedly closes is reopened for patience: at once for a few times, and then
// after pauses. Such a command waits for the service's change of the mode, so immediate retries would all
// fail. If the folder was not closed a few times in a row, another cause is to blame.
const (
	patience = time.Second
	atOnce   = 12
	pause    = 20 * time.Microsecond
	longest  = 2 * time.Millisecond
)

// Open opens a sandbox's own folder for reading and keeps its rights. The path is trusted except for the
// last part, which must not be a link.
func Open(path string) (fd int, err error) {
	err = through(unix.AT_FDCWD, path, func() (err error) {
		fd, err = unix.Open(path, folder, 0)
		return err
	})
	if err == nil {
		if err = Keep(fd, ""); err == nil {
			return fd, nil
		}
		_ = unix.Close(fd)
	}
	return -1, &os.PathError{Op: "open", Path: path, Err: err}
}

// Through calls f, which reaches a file through a sandbox's own open folder. It repeats that while the
// folder is closed to it.
func Through(dir *os.File, f func() error) error { return through(int(dir.Fd()), "", f) }

func through(dir int, name string, f func() error) error {
	err := f()
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	begun, wait := time.Now(), pause
	for try, open := 0, 0; open <= atOnce && time.Since(begun) <= patience; try++ {
		missing, bad := keep(dir, name)
		if bad != nil {
			return bad
		}
		if open++; missing {
			open = 0
		}
		if err = f(); !errors.Is(err, unix.EACCES) {
			return err
		}
		if try < atOnce {
			runtime.Gosched()
			continue
		}
		<-time.After(wait)
		wait = min(wait*5/4, longest)
	}
	return err
}

// folder are the flags for opening a folder for reading.
const folder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// link returns a name of an open file that no rename can redirect.
func link(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
