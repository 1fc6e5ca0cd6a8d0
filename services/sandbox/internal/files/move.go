package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Move renames a file, a link itself or a directory, and makes the directories that lead there. It returns
// ErrExists if the new name is taken, unless overwrite is set. Then a file replaces a file, and a directory
// replaces an empty directory; if both are names of one file, the old one goes. Move calls before just
// before it takes effect.
func (t *Tree) Move(from, to string, overwrite bool, before func(RenameStep) error) (Info, error) {
	from, to, err := cleanMove(from, to)
	if err != nil {
		return Info{}, err
	}
	source, oldName, err := t.parent(from)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = source.Close() }()
	// Kept open, it can be described afterwards even if its new name is gone by then.
	fd := -1
	err = t.through(func() (err error) {
		fd, err = unix.Openat(int(source.Fd()), oldName, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return Info{}, refine(from, err)
	}
	defer func() { _ = unix.Close(fd) }()
	file, err := mark(fd, "")
	if err != nil {
		return Info{}, err
	}
	if err := t.makeDirectories(path.Dir(to)); err != nil {
		return Info{}, err
	}
	target, newName, err := t.parent(to)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = target.Close() }()
	if err := before(RenameStep{File: file, From: from, To: to}); err != nil {
		return Info{}, err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if overwrite {
		flags = 0
	}
	old, there := place{int(source.Fd()), oldName}, place{int(target.Fd()), newName}
	err = t.renameAt(old, there, flags)
	if err == nil && overwrite {
		err = t.dropTwin(old, there, fd)
	}
	if err != nil {
		if errors.Is(err, unix.EINVAL) {
			return Info{}, fmt.Errorf("%w: %s cannot move into itself", ErrWrongType, from)
		}
		return Info{}, refine(to, err)
	}
	// A command may have put another file there, under either name.
	if i, err := t.describe(int(target.Fd()), newName, to); err == nil {
		return i, nil
	}
	return describe(fd, "", to)
}

// place is a name in an open directory.
type place struct {
	dir  int
	name string
}

func (t *Tree) renameAt(from, to place, flags uint) error {
	return t.through(func() error { return unix.Renameat2(from.dir, from.name, to.dir, to.name, flags) })
}

// dropTwin removes the old name if both were names of one file before: the kernel reports a move then, but
// does nothing.
func (t *Tree) dropTwin(old, there place, file int) error {
	if twins, err := t.areTwins(old, there, file); err != nil || !twins {
		return err
	}
	return t.moveAgain(old, there)
}

// moveAgain renames the old name to a temporary one, moves the file from there, and removes the rest. If
// both names are one entry (in a case-insensitive folder), the entry stays. If another process has put
// something in either place meanwhile, it is moved or replaced, as in any move.
func (t *Tree) moveAgain(old, there place) error {
	aside := place{old.dir, ".fairlead-" + rand.Text()}
	if !t.foreign {
		aside = place{unix.AT_FDCWD, filepath.Join(t.staging, "moved-"+rand.Text())}
	}
	switch err := t.renameAt(old, aside, unix.RENAME_NOREPLACE); {
	case errors.Is(err, unix.ENOENT):
		return nil // removed concurrently
	case err != nil:
		return err
	}
	if err := t.renameAt(aside, there, 0); err != nil {
		back := t.renameAt(aside, old, unix.RENAME_NOREPLACE)
		if errors.Is(back, unix.EEXIST) { // another process has put something there meanwhile: the file stays in the workspace
			back = t.renameAt(aside, place{old.dir, "moved-" + rand.Text()}, unix.RENAME_NOREPLACE)
		}
		return errors.Join(err, back)
	}
	if err := unix.Unlinkat(aside.dir, aside.name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// areTwins reports whether two places are two names of an open file that is no directory.
func (t *Tree) areTwins(old, there place, file int) (bool, error) {
	var is, a, b, from, to unix.Stat_t
	if err := unix.Fstat(file, &is); err != nil || is.Nlink < 2 || is.Mode&unix.S_IFMT == unix.S_IFDIR {
		return false, err
	}
	err := t.through(func() error {
		return errors.Join(
			unix.Fstatat(old.dir, old.name, &a, unix.AT_SYMLINK_NOFOLLOW), unix.Fstatat(there.dir, there.name, &b, unix.AT_SYMLINK_NOFOLLOW),
			unix.Fstat(old.dir, &from), unix.Fstat(there.dir, &to),
		)
	})
	if errors.Is(err, unix.ENOENT) {
		return false, nil // it has moved
	}
	same := func(x, y *unix.Stat_t) bool { return x.Dev == y.Dev && x.Ino == y.Ino }
	return same(&a, &b) && (!same(&from, &to) || old.name != there.name), err
}

func cleanMove(from, to string) (string, string, error) {
	from, err := Clean(from)
	if err != nil {
		return "", "", err
	}
	to, err = Clean(to)
	switch {
	case err != nil:
		return "", "", err
	case from == "." || to == ".":
		return "", "", fmt.Errorf("%w: the workspace itself cannot be moved or replaced", ErrWrongType)
	case strings.Count(to, "/") > maxDepth:
		return "", "", fmt.Errorf("%w: it is nested more than %d directories deep", ErrName, maxDepth)
	}
	return from, to, nil
}
