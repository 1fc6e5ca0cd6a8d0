package files

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// Bundle is a directory that is being filled. It is not in the workspace: PutBundle moves it there
// atomically. The caller must discard it in any case.
type Bundle struct {
	*Tree
	dir string
}

// Bundle starts a directory.
func (t *Tree) Bundle() (*Bundle, error) {
	dir, err := os.MkdirTemp(t.staging, "bundle-")
	if full(err) {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start a directory: %w", err)
	}
	inner, err := Open(dir, t.staging, t.owner)
	if err == nil && t.owner.UID >= 0 {
		err = inner.root.Chown(t.owner.UID, t.owner.GID)
	}
	if err == nil {
		err = inner.root.Chmod(0o755)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a directory: %w", err), os.Remove(dir))
	}
	return &Bundle{Tree: inner, dir: dir}, nil
}

// Discard deletes the directory unless it was put in place.
func (b *Bundle) Discard() {
	_ = b.Close()
	_ = erase.All(b.dir) // otherwise the staging folder is emptied with the workspace
}

// CheckBundle reports that no directory can be put at a place, whatever is there: then nothing has to be unpacked.
func CheckBundle(s *Space, name string) error {
	_, err := bundlePlace(s, name)
	return err
}

// bundlePlace returns the path of a directory that is put into the workspace.
func bundlePlace(s *Space, name string) (string, error) {
	full, m, _, err := s.find(name)
	switch {
	case err != nil:
		return "", err
	case m != nil:
		return "", fmt.Errorf("%w: %s", ErrMountPoint, m.Alias)
	case full == ".":
		return "", fmt.Errorf("%w: it is the workspace itself: name a directory in it", ErrExists)
	}
	return full, nil
}

// PutBundle moves a directory to its place, and makes the directories that lead there. It returns ErrExists
// if the name is taken. It calls before just before it takes effect.
func (s *Space) PutBundle(b *Bundle, name string, before func(RenameStep) error) (Info, error) {
	full, err := bundlePlace(s, name)
	if err != nil {
		return Info{}, err
	}
	if err := s.makeDirectories(path.Dir(full)); err != nil {
		return Info{}, err
	}
	dir, last, err := s.parent(full)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = dir.Close() }()
	file, err := mark(int(b.root.Fd()), "")
	if err != nil {
		return Info{}, err
	}
	if err := before(RenameStep{File: file, From: filepath.Base(b.dir), Staged: true, To: full}); err != nil {
		return Info{}, err
	}
	if err := s.renameAt(place{unix.AT_FDCWD, b.dir}, place{int(dir.Fd()), last}, unix.RENAME_NOREPLACE); err != nil {
		return Info{}, refine(full, err)
	}
	return describe(int(b.root.Fd()), "", full)
}
