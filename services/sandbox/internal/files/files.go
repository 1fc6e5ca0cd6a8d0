// Package files works on the files of a workspace while hostile commands may run in it.
//
// The kernel resolves every path beneath the workspace (openat2 with RESOLVE_BENEATH). It refuses a path
// that leads outside, by `..`, by a link or by a race: there is no moment between the check and the use.
// Links that stay inside are followed, absolute links never. Walks go from folder to folder by descriptor
// and follow no link. The package opens nothing that could block or act: no FIFO, no device.
package files

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// Errors of this package. All other errors are failures of the disk.
var (
	ErrNotFound   = errors.New("there is no such file")
	ErrEscapes    = errors.New("the path leads outside the workspace")
	ErrWrongType  = errors.New("the file is not of the needed type")
	ErrExists     = errors.New("there is already such a file")
	ErrEtag       = errors.New("the file has changed")
	ErrPattern    = errors.New("the pattern is not valid")
	ErrTooLarge   = errors.New("the file is too large")
	ErrNotEmpty   = errors.New("the directory is not empty")
	ErrReadOnly   = errors.New("the mount is read-only")
	ErrMountPoint = errors.New("the place belongs to a mount, and cannot be moved, replaced or removed")
	ErrName       = errors.New("the path is not valid")
	ErrNoRoom     = errors.New("the workspace is full, or the disk that it is on")
	ErrNotText    = errors.New("the file cannot be edited as text")
	ErrExport     = errors.New("the workspace cannot be exported")
)

// Kinds of ErrWrongType.
var (
	errShut         = fmt.Errorf("%w", ErrWrongType) // of a path that cannot be searched
	errNotDirectory = fmt.Errorf("%w", ErrWrongType) // of a part of a path
)

// mount is the path of the workspace in a sandbox, and trees that of the read-only folders beside it.
const (
	mount = "/workspace"
	trees = "/skills"
)

// Owner is the owner of written files; UID -1 means the service's own user.
type Owner struct{ UID, GID int }

// Tree is an open workspace. It is safe for concurrent use. The caller must close it.
type Tree struct {
	resolver

	// Folder is called before a folder is made that leads to a file; nil allows all.
	Folder func() error

	staging string
	owner   Owner
	within  *Tree // the workspace of a mount
}

// Open opens a workspace. staging is a folder on the same file system, closed to commands, for files that
// are not yet in place.
func Open(dir, staging string, owner Owner) (*Tree, error) {
	fd, err := rights.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Tree{resolver: resolver{root: os.NewFile(uintptr(fd), dir)}, staging: staging, owner: owner}, nil
}

// Close closes the tree.
func (t *Tree) Close() error { return t.root.Close() }

// clean is Clean for a Space, which may have mounts beside the workspace: a path below /skills stays
// absolute.
func clean(name string) (string, error) {
	if beside := path.Clean(name); beside == trees || strings.HasPrefix(beside, trees+"/") {
		if strings.ContainsRune(name, 0) {
			return "", fmt.Errorf("%w: it contains a NUL", ErrName)
		}
		return beside, nil
	}
	return Clean(name)
}

// Clean turns a request's path, relative or absolute below /workspace, into one relative to the workspace;
// "." is the workspace itself. It only gives each file one name; the kernel keeps paths inside.
func Clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%w: it contains a NUL", ErrName)
	}
	if path.IsAbs(name) {
		absolute := path.Clean(name)
		if absolute != mount && !strings.HasPrefix(absolute, mount+"/") {
			return "", fmt.Errorf("%w: %s", ErrEscapes, name)
		}
		name = strings.TrimPrefix(strings.TrimPrefix(absolute, mount), "/")
	}
	name = path.Clean(name)
	if name == ".." || strings.HasPrefix(name, "../") {
		return "", fmt.Errorf("%w: %s", ErrEscapes, name)
	}
	return name, nil
}

// refine turns an error of the kernel into one of this package.
func refine(name string, err error) error {
	switch {
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("%w: %s", ErrEscapes, name)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: a part of %s is not a directory", errNotDirectory, name)
	case errors.Is(err, unix.EISDIR):
		return fmt.Errorf("%w: %s is a directory", ErrWrongType, name)
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w: the links in %s go in circles", ErrWrongType, name)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: %s is a socket or a device", ErrWrongType, name)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %s", ErrReadOnly, name)
	case errors.Is(err, unix.EOVERFLOW):
		return fmt.Errorf("%w: %s belongs to a user that this file system cannot represent", ErrWrongType, name)
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%w: %s", ErrExists, name)
	case errors.Is(err, unix.ENOTEMPTY):
		return fmt.Errorf("%w: %s", ErrNotEmpty, name)
	case errors.Is(err, unix.ENAMETOOLONG):
		return tooLong(name)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: %s is closed to reading or searching", errShut, name)
	case full(err):
		return fmt.Errorf("%w: %s", ErrNoRoom, name)
	}
	return &os.PathError{Op: "open", Path: name, Err: err}
}

// maxName is the longest name, in bytes, on most file systems.
const maxName = 255

// tooLong returns an error that names the part of a path that is too long, or the path.
func tooLong(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxName {
			return fmt.Errorf("%w: a name in it is too long, with %d bytes: %d are the most: %.64s…", ErrName, len(part), maxName, part)
		}
	}
	return fmt.Errorf("%w: it is too long, with %d bytes: %d are the most: %.64s…", ErrName, len(name), unix.PathMax-1, name)
}

// full reports whether an error is one that file systems return for an exceeded quota.
func full(err error) bool { return errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC) }
