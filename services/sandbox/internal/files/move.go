package files

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Move gives a file, a link itself or a directory another name, and makes the
// directories that lead there. What has that name already is ErrExists, unless it
// is to be overwritten: then a file gives way to a file, and an empty directory to
// a directory. before is called just before the move takes effect.
func (t *Tree) Move(from, to string, overwrite bool, before func(Step) error) (Info, error) {
	from, to, err := cleanMove(from, to)
	if err != nil {
		return Info{}, err
	}
	source, oldName, err := t.parent(from)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = source.Close() }()
	// Held open, it can be told of afterwards even if its new name is gone by then.
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
	if err := before(Step{File: file, From: from, To: to}); err != nil {
		return Info{}, err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if overwrite {
		flags = 0
	}
	err = t.through(func() error { return unix.Renameat2(int(source.Fd()), oldName, int(target.Fd()), newName, flags) })
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
