package files

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/forks"
)

// Draft is a file that is being written. It is not in the workspace: Put moves it there atomically. The
// caller must discard it in any case.
type Draft struct {
	tree *Tree
	file *os.File
	size int64
}

// Draft starts a file.
func (t *Tree) Draft() (*Draft, error) {
	f, err := os.CreateTemp(t.staging, "draft-")
	if full(err) {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start a file: %w", err)
	}
	return &Draft{tree: t, file: f}, nil
}

// Write appends to the file.
func (d *Draft) Write(b []byte) (int, error) {
	n, err := d.file.Write(b)
	d.size += int64(n)
	if full(err) {
		err = fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return n, err
}

// finish ends the writing of a file, so that it can be executed as soon as it has a name. It returns the
// file, open for reading; the caller must close it, also after an error. A network file system may report
// only here that a write failed.
func finish(f *os.File) (*os.File, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return f, &os.PathError{Op: "open", Path: f.Name(), Err: err}
	}
	finished := os.NewFile(uintptr(fd), f.Name())
	if err := f.Close(); err != nil {
		return finished, err
	}
	forks.Await(finished)
	return finished, nil
}

// Size returns the bytes written.
func (d *Draft) Size() int64 { return d.size }

// Discard deletes the draft unless it was put in place.
func (d *Draft) Discard() {
	_ = d.file.Close()
	if err := os.Remove(d.file.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return // the staging folder is emptied with the workspace
	}
}

// Target is how a draft is put in place.
type Target struct {
	Mode       uint32 // of a new file; zero means 0644
	IfEtag     string // replaces only this version; empty for any
	CreateOnly bool   // fails if the name is taken
	// Before is called just before the file is put in place. It gets the step, the file, and the bytes that
	// the replaced file frees, or -1 if none is replaced.
	Before func(p RenameStep, i Info, replaces int64) error
}

// maxLinks is how many links are followed at a path's end, as in the kernel.
const maxLinks = 40

// Put puts a draft in place under a name, and makes the directories that lead to it. It follows a link at
// the end of the path, so that the link stays.
func (t *Tree) Put(d *Draft, name string, to Target) (Info, bool, error) {
	name, err := Clean(name)
	if err != nil {
		return Info{}, false, err
	}
	if name == "." {
		return Info{}, false, fmt.Errorf("%w: the workspace itself is a directory", ErrWrongType)
	}
	// Searches and counts of the workspace do not reach deeper files.
	if strings.Count(name, "/") > maxDepth {
		return Info{}, false, fmt.Errorf("%w: it is nested more than %d directories deep", ErrName, maxDepth)
	}
	if err := t.makeDirectories(path.Dir(name)); err != nil {
		return Info{}, false, err
	}
	place := name // name with links at its end followed
	for range maxLinks {
		next, info, created, err := t.putAt(d, name, place, to)
		if next == "" {
			return info, created, err
		}
		place = next
	}
	return Info{}, false, refine(name, unix.ELOOP)
}

// putAt tries to put a draft at a place. If a link is there, it returns the link's target instead.
func (t *Tree) putAt(d *Draft, name, place string, to Target) (next string, _ Info, created bool, _ error) {
	dir, last, err := t.parent(place)
	if err != nil {
		return "", Info{}, false, err
	}
	defer func() { _ = dir.Close() }()
	old, err := t.describe(int(dir.Fd()), last, name)
	switch {
	case errors.Is(err, ErrNotFound):
		created = true
	case err != nil:
		return "", Info{}, false, err
	case old.Type == Symlink && t.Rules.noLinks():
		return "", Info{}, false, fmt.Errorf("%w: %s is a symbolic link", ErrChanged, name)
	case old.Type == Symlink:
		if strings.HasPrefix(old.Target, "/") {
			return "", Info{}, false, fmt.Errorf("%w: %s is an absolute link", ErrEscapes, name)
		}
		if to.CreateOnly {
			return "", Info{}, false, refine(name, unix.EEXIST)
		}
		return path.Dir(place) + "/" + old.Target, Info{}, false, nil // not cleaned: the kernel resolves `..`
	}
	if err := to.allows(name, old, created); err != nil {
		return "", Info{}, false, err
	}
	mode := old.Mode
	if created {
		mode = to.Mode
		if mode == 0 {
			mode = 0o644
		}
	}
	p := placing{
		tree: t, file: d.file, from: unix.AT_FDCWD, dir: dir, last: last, name: name, mode: mode, old: old, created: created,
		step: RenameStep{Size: d.size, From: filepath.Base(d.file.Name()), Staged: true, To: name},
	}
	info, err := t.rename(d, p, to)
	return "", info, created, err
}

func (to Target) allows(name string, old Info, created bool) error {
	switch {
	case created && to.IfEtag != "":
		return fmt.Errorf("%w: %s no longer exists", ErrEtag, name)
	case created:
		return nil
	case to.CreateOnly:
		return refine(name, unix.EEXIST)
	case old.Type != Regular:
		return fmt.Errorf("%w: %s is not a regular file", ErrWrongType, name)
	case to.IfEtag != "" && to.IfEtag != old.Etag:
		return fmt.Errorf("%w: %s: read it again", ErrEtag, name)
	}
	return nil
}

func (t *Tree) rename(d *Draft, p placing, to Target) (Info, error) {
	if t.foreign {
		return d.copyInto(p, to)
	}
	var err error
	if d.file, err = finish(d.file); err != nil {
		return Info{}, fmt.Errorf("finish a file: %w", err)
	}
	p.file = d.file
	if t.owner.UID >= 0 {
		if err := unix.Fchown(int(d.file.Fd()), t.owner.UID, t.owner.GID); err != nil {
			return Info{}, fmt.Errorf("give the file to the workspace's user: %w", err)
		}
	}
	return p.rename(to)
}

// placing is a complete file on its way to its place.
type placing struct {
	tree    *Tree
	file    *os.File
	from    int // the directory of the file's current name
	dir     *os.File
	last    string // in dir
	name    string // relative to the workspace
	mode    uint32
	old     Info // the file that it replaces, unless created
	created bool
	step    RenameStep
}

func (p placing) rename(to Target) (Info, error) {
	fd := int(p.file.Fd())
	if err := unix.Fchmod(fd, p.mode&0o7777); err != nil { // after the owner, whose change clears bits
		return Info{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, err
	}
	if to.Before != nil {
		replaces := int64(-1)
		if !p.created {
			replaces = freed(p.dir, p.last)
		}
		var err error
		if p.step.File, err = mark(fd, ""); err != nil {
			return Info{}, err
		}
		if err := to.Before(p.step, newInfo(p.name, &st), replaces); err != nil {
			return Info{}, err
		}
	}
	var flags uint
	if to.CreateOnly {
		flags = unix.RENAME_NOREPLACE
	}
	err := p.tree.through(func() error { return unix.Renameat2(p.from, p.file.Name(), int(p.dir.Fd()), p.last, flags) })
	if err != nil {
		return Info{}, refine(p.name, err)
	}
	_ = unix.Fstat(fd, &st) // it is done: the earlier status is nearly right
	return newInfo(p.name, &st), nil
}

// freed returns the bytes that the disk regains when a name of a file goes: none if the file has other
// names, and none for holes.
func freed(dir *os.File, name string) int64 {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Nlink > 1 {
		return 0 // a later count is exact
	}
	return min(st.Size, st.Blocks*512)
}

// makeDirectories makes the missing directories of a path.
func (t *Tree) makeDirectories(name string) error {
	if f, err := t.open(name, unix.O_PATH|unix.O_DIRECTORY); err == nil {
		return f.Close()
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := t.makeDirectories(path.Dir(name)); err != nil {
		return err
	}
	dir, last, err := t.parent(name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if t.Folder != nil {
		if err := t.Folder(); err != nil {
			return err
		}
	}
	err = t.through(func() error { return unix.Mkdirat(int(dir.Fd()), last, 0o755) })
	if errors.Is(err, unix.EEXIST) {
		return nil // made meanwhile; or a dangling link, at which the next step fails
	}
	if err != nil {
		return refine(name, err)
	}
	if t.owner.UID < 0 {
		return nil
	}
	// By name and without following: if a command put a link there meanwhile, the link changes owner.
	if err := unix.Fchownat(int(dir.Fd()), last, t.owner.UID, t.owner.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return refine(name, err)
	}
	return nil
}
