package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// Remove removes a file, a link itself, or a directory.
func (t *Tree) Remove(name string, recursive bool) error {
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
	err = unix.Unlinkat(fd, last, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		if err != nil {
			return refine(name, err)
		}
		return nil
	}
	err = unix.Unlinkat(fd, last, unix.AT_REMOVEDIR)
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.ENOTEMPTY) || !recursive {
		return refine(name, err)
	}
	if t.foreign {
		return removeInPlace(fd, last, name)
	}
	return t.removeTree(fd, last, name)
}

// removeTree takes a directory out of the workspace first, where no command can
// add to it or change it under the feet of its removal.
func (t *Tree) removeTree(fd int, last, name string) error {
	place, err := os.MkdirTemp(t.staging, "removed-")
	if err != nil {
		return err
	}
	if err := unix.Renameat(fd, last, unix.AT_FDCWD, place+"/x"); err != nil {
		return errors.Join(refine(name, err), os.Remove(place))
	}
	return erase.All(place)
}
