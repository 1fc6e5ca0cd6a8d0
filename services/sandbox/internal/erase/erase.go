// Package erase deletes trees that commands have made.
package erase

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// All deletes a tree that is no longer reachable, or that the commands that still see it cannot keep. A
// command may have removed the owner's rights to read or change folders, which matters if the service is
// that owner. It may also have nested folders deeper than files can be open.
func All(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if err := flatten(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// flatten deletes the contents of a folder. It first moves the contents of subfolders up, one after the
// other. So paths stay short and few files are open, however deep they were. It follows no link, because a
// command may change what it still sees.
func flatten(dir string) error {
	top, err := open(unix.AT_FDCWD, dir)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { _ = top.Close() }()
	left, err := top.Readdirnames(-1)
	if err != nil {
		return err
	}
	for made := 0; len(left) > 0; {
		name := left[len(left)-1]
		left = left[:len(left)-1]
		raised, err := raise(top, name, &made)
		if err != nil {
			return fmt.Errorf("delete %s: %w", dir, err)
		}
		left = append(left, raised...)
	}
	return nil
}

// raise deletes a file in top, or a folder except its non-empty subfolders, which it moves beside it. It
// returns their names.
func raise(top *os.File, name string, made *int) (raised []string, err error) {
	to := int(top.Fd())
	if removed(to, name) {
		return nil, nil
	}
	dir, err := open(to, name)
	if err != nil {
		return nil, err
	}
	raised, err = empty(dir, to, made)
	if err = errors.Join(err, dir.Close()); err != nil { // close first: closing the deleted folder takes long
		return nil, err
	}
	return raised, unix.Unlinkat(to, name, unix.AT_REMOVEDIR)
}

// empty is raise for the contents of a folder.
func empty(dir *os.File, to int, made *int) (raised []string, err error) {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, last := range names {
		if removed(int(dir.Fd()), last) {
			continue
		}
		sub, err := open(int(dir.Fd()), last) // a closed folder cannot be moved either
		if err != nil {
			return nil, err
		}
		_ = sub.Close()
		if last, err = rename(int(dir.Fd()), last, to, made); err != nil {
			return nil, err
		}
		raised = append(raised, last)
	}
	return raised, nil
}

// rename moves a folder into another one under a free name.
func rename(dir int, name string, to int, made *int) (string, error) {
	for {
		*made++
		free := "erased-" + strconv.Itoa(*made)
		err := unix.Renameat2(dir, name, to, free, unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return free, err
		}
	}
}

// removed removes a file or an empty folder and reports whether it is gone.
func removed(dir int, name string) bool {
	for _, flags := range []int{0, unix.AT_REMOVEDIR} {
		if err := unix.Unlinkat(dir, name, flags); err == nil || errors.Is(err, unix.ENOENT) {
			return true
		}
	}
	return false
}

// open opens a folder with all rights of its owner, following no link.
func open(dir int, name string) (*os.File, error) {
	at, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(at) }()
	path := fmt.Sprintf("/proc/self/fd/%d", at)
	_ = unix.Chmod(path, 0o700) // the next call shows whether that was needed
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
