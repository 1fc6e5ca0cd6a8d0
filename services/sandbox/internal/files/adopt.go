package files

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Adopt moves a directory of the host, in the staging folder, into the workspace under a free name. It
// makes the directories that lead there. It calls before just before the move takes effect.
func (t *Tree) Adopt(source, name string, before func(RenameStep) error) (err error) {
	if name, err = Clean(name); err != nil {
		return err
	}
	from, err := os.Open(filepath.Dir(source))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	var st unix.Stat_t
	if err := unix.Fstatat(int(from.Fd()), filepath.Base(source), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "adopt", Path: source, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fmt.Errorf("%w: %s is not a directory", ErrWrongType, filepath.Base(source))
	}
	if err := t.makeDirectories(path.Dir(name)); err != nil {
		return err
	}
	to, last, err := t.parent(name)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	p := RenameStep{Staged: true, To: name}
	if p.From, err = filepath.Rel(t.staging, source); err != nil {
		return err
	}
	if p.File, err = mark(int(from.Fd()), filepath.Base(source)); err != nil {
		return err
	}
	if err := before(p); err != nil {
		return err
	}
	err = unix.Renameat2(int(from.Fd()), filepath.Base(source), int(to.Fd()), last, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EXDEV) { // not a way out of the workspace, as elsewhere
		return &os.PathError{Op: "adopt", Path: source, Err: err}
	}
	if err != nil {
		return refine(name, err)
	}
	return nil
}
