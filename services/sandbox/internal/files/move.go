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
// a directory. before is called just before the move takes effect, with what
// identifies the file.
func (t *Tree) Move(from, to string, overwrite bool, before func(inode uint64) error) (Info, error) {
	from, to, err := cleanMove(from, to)
	if err != nil {
		return Info{}, err
	}
	source, oldName, err := t.parent(from)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = source.Close() }()
	var st unix.Stat_t
	if err := unix.Fstatat(int(source.Fd()), oldName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Info{}, refine(from, err)
	}
	if err := t.makeDirectories(path.Dir(to)); err != nil {
		return Info{}, err
	}
	target, newName, err := t.parent(to)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = target.Close() }()
	if err := before(st.Ino); err != nil {
		return Info{}, err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if overwrite {
		flags = 0
	}
	if err := unix.Renameat2(int(source.Fd()), oldName, int(target.Fd()), newName, flags); err != nil {
		if errors.Is(err, unix.EINVAL) {
			return Info{}, fmt.Errorf("%w: %s cannot move into itself", ErrWrongType, from)
		}
		return Info{}, refine(to, err)
	}
	return describe(int(target.Fd()), newName, to)
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

// Identity is what identifies the file of a name, following no link at its end;
// zero if there is none.
func (t *Tree) Identity(name string) (uint64, Info) {
	name, err := Clean(name)
	if err != nil {
		return 0, Info{}
	}
	f, err := t.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return 0, Info{}
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0, Info{}
	}
	info, err := describe(int(f.Fd()), "", name)
	if err != nil {
		return 0, Info{}
	}
	return st.Ino, info
}
