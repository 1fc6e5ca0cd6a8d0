package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// Remove removes a file, a link itself, or a directory. It calls before, unless that is nil, just before
// the removal takes effect.
func (t *Tree) Remove(name string, recursive bool, before func(RenameStep) error) error {
	name, err := Clean(name)
	if err != nil {
		return err
	}
	if name == "." {
		return fmt.Errorf("%w: the workspace itself cannot be removed", ErrWrongType)
	}
	dir, last, err := t.parent(name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	fd := int(dir.Fd())
	if before != nil {
		if err := t.reportStep(fd, last, name, recursive, before); err != nil {
			return err
		}
	}
	err = t.through(func() error { return unix.Unlinkat(fd, last, 0) })
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		if err != nil {
			return refine(name, err)
		}
		return nil
	}
	return t.removeDirectory(dir, last, name, recursive)
}

func (t *Tree) removeDirectory(dir *os.File, last, name string, recursive bool) error {
	fd := int(dir.Fd())
	err := t.through(func() error { return unix.Unlinkat(fd, last, unix.AT_REMOVEDIR) })
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.ENOTEMPTY) || !recursive {
		return refine(name, err)
	}
	if t.foreign {
		return removeInPlace(fd, last, name)
	}
	away, err := t.takeAway(fd, last, name)
	if err != nil {
		return err
	}
	_ = erase.All(away) // it is gone from the workspace; the next clearing of the staging folder removes the rest
	return nil
}

// reportStep describes the file to before, ahead of its removal.
func (t *Tree) reportStep(fd int, last, name string, recursive bool, before func(RenameStep) error) error {
	i, err := t.describe(fd, last, name)
	if err != nil {
		return err
	}
	var file Mark
	err = t.through(func() (err error) { file, err = mark(fd, last); return err })
	if err != nil {
		return refine(name, err)
	}
	return before(RenameStep{File: file, From: name, Piecemeal: t.foreign && recursive && i.Type == Directory})
}

// takeAway moves a directory out of the workspace, so that no command can change it during its removal.
func (t *Tree) takeAway(fd int, last, name string) (place string, err error) {
	place, err = os.MkdirTemp(t.staging, "removed-")
	if err != nil {
		return "", err
	}
	away := func() error { return unix.Renameat(fd, last, unix.AT_FDCWD, place+"/x") }
	err = t.through(away)
	if errors.Is(err, unix.EACCES) { // without all rights to it, its owner cannot move it either
		if _, back, lendErr := rights.Lend(fd, last, 0o700); lendErr == nil {
			err = t.through(away)
			back()
		}
	}
	if err != nil {
		return "", errors.Join(refine(name, err), os.Remove(place))
	}
	return place, nil
}
