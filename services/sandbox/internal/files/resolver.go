package files

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// resolver resolves names beneath a folder. It is safe for concurrent use.
type resolver struct {
	// Rules restrict the request that the resolver is for.
	Rules *Rules

	root    *os.File
	points  map[identity]bool // places of mounts; see Space
	foreign bool              // the folder is a mount's: files are written directly in their folder
	alias   string            // of a mount
}

// attempts limits the retries of a resolution that the kernel gave up because of a concurrent rename.
const attempts = 64

// open resolves a name beneath the workspace. It does not clean the name.
func (r *resolver) open(name string, flags uint64) (*os.File, error) {
	if r.Rules.noLinks() {
		return r.openWith(name, flags, unix.RESOLVE_NO_SYMLINKS)
	}
	return r.openWith(name, flags, 0)
}

// openWith is open with further flags for the resolution.
func (r *resolver) openWith(name string, flags, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: resolve | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	var fd int
	look := func() (err error) {
		fd, err = unix.Openat2(int(r.root.Fd()), name, &how)
		return err
	}
	for range attempts {
		err := r.through(look)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ELOOP) && resolve&unix.RESOLVE_NO_SYMLINKS != 0 {
			return nil, fmt.Errorf("%w: a part of %s is a symbolic link", ErrChanged, name)
		}
		if err != nil {
			return nil, refine(name, err)
		}
		return os.NewFile(uintptr(fd), name), nil
	}
	return nil, fmt.Errorf("%w: %s changes while it is looked up", ErrEscapes, name)
}

// through calls f, which looks up or atomically changes something in the workspace. It repeats that while a
// command closes the workspace to it.
func (r *resolver) through(f func() error) error {
	if r.foreign {
		return f()
	}
	return rights.Through(r.root, f)
}

// regular opens a regular file for reading and refuses anything else.
func (r *resolver) regular(name string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	f, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, st, r.orSimilar(name, err)
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, st, errors.Join(err, f.Close())
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, errors.Join(fmt.Errorf("%w: %s is not a regular file", ErrWrongType, name), f.Close())
	}
	return f, st, nil
}

// directory opens a directory for reading.
func (r *resolver) directory(name string) (*os.File, error) {
	f, err := r.open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if errors.Is(err, ErrWrongType) && r.other(name) {
		return nil, fmt.Errorf("%w: %s is not a directory", ErrWrongType, name)
	}
	return f, r.orSimilar(name, err)
}

// other reports whether a name is that of something other than a directory.
func (r *resolver) other(name string) bool {
	f, err := r.open(name, unix.O_PATH)
	if err != nil {
		return false // the name leads nowhere
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR
}

// parent opens the directory of a name and returns the last part.
func (r *resolver) parent(name string) (*os.File, string, error) {
	dir, last := path.Split(name)
	if last == "" || last == "." || last == ".." {
		return nil, "", fmt.Errorf("%w: %s is a directory", ErrWrongType, name)
	}
	if dir == "" {
		dir = "."
	}
	f, err := r.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil && len(r.points) > 0 {
		if err = r.clear(f, last); err != nil {
			return nil, "", errors.Join(fmt.Errorf("%w: %s", err, name), f.Close())
		}
	}
	return f, last, err
}

// describe is the function describe, for a directory that may be the workspace itself.
func (r *resolver) describe(fd int, last, name string) (i Info, err error) {
	err = r.through(func() (err error) { i, err = look(fd, last, name); return err })
	if err != nil {
		return Info{}, refine(name, err)
	}
	return i, nil
}

// lookAt describes the file at a place, following no link.
func (r *resolver) lookAt(place string) (Info, error) {
	f, err := r.openWith(place, unix.O_PATH|unix.O_NOFOLLOW, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = f.Close() }()
	return describe(int(f.Fd()), "", place)
}

// protect refuses later changes of the folders that an alias needs, and reports whether they exist.
func (r *resolver) protect(alias string) (bool, error) {
	if r.points == nil {
		r.points = map[identity]bool{}
	}
	for point := alias; point != "."; point = path.Dir(point) {
		var f *os.File
		err := rights.Through(r.root, func() (err error) {
			f, err = bind.Beneath(r.root, point)
			return err
		})
		switch {
		case vanished(err), errors.Is(err, unix.EACCES):
			return false, nil
		case err != nil:
			return false, err
		}
		var st unix.Stat_t
		if err := errors.Join(unix.Fstat(int(f.Fd()), &st), f.Close()); err != nil {
			return false, err
		}
		r.points[identify(&st)] = true
	}
	return true, nil
}

// clear refuses a change in, or of, a folder over which a mount lies.
func (r *resolver) clear(dir *os.File, last string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	if r.points[identify(&st)] {
		return ErrMountPoint
	}
	err := r.through(func() error { return unix.Fstatat(int(dir.Fd()), last, &st, unix.AT_SYMLINK_NOFOLLOW) })
	switch {
	case errors.Is(err, unix.EACCES): // it may be one
		return errShut
	case err == nil && r.points[identify(&st)]:
		return ErrMountPoint
	}
	return nil
}
