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

// Draft is a file that is being written. It is not in the workspace yet: Put puts
// it there, whole. It must be discarded in any case.
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

// Write adds to the file.
func (d *Draft) Write(b []byte) (int, error) {
	n, err := d.file.Write(b)
	d.size += int64(n)
	if full(err) {
		err = fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return n, err
}

// finish ends the writing of a file, so that it can be executed from the moment in which it
// has a name. It returns the same file, open for reading, which is to be closed also after an
// error: file systems across a network may tell only here that they have not taken what was written.
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

// Size is how much was written.
func (d *Draft) Size() int64 { return d.size }

// Discard deletes the draft, if it was not put in place.
func (d *Draft) Discard() {
	_ = d.file.Close()
	if err := os.Remove(d.file.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return // the staging folder is emptied with the workspace
	}
}

// Target says what a draft is put in place of.
type Target struct {
	Mode       uint32 // of a new file; zero means 0644
	IfEtag     string // puts only over this version; empty for any
	CreateOnly bool   // puts only where there is nothing
	// Before is called just before the file is put in place, with what is about to be
	// done, the file, and how much what it replaces gives back, -1 if it replaces nothing.
	Before func(p Step, i Info, replaces int64) error
}

// maxLinks is how many links are followed at a path's end, as the kernel does.
const maxLinks = 40

// Put puts a draft in place under a name, with the directories that lead to it.
// A link at the end of the path is followed, so that it stays a link.
func (t *Tree) Put(d *Draft, name string, to Target) (Info, bool, error) {
	name, err := Clean(name)
	if err != nil {
		return Info{}, false, err
	}
	if name == "." {
		return Info{}, false, fmt.Errorf("%w: the workspace itself is a directory", ErrWrongType)
	}
	// What lies deeper no search finds, and no count of the workspace.
	if strings.Count(name, "/") > maxDepth {
		return Info{}, false, fmt.Errorf("%w: it is nested more than %d directories deep", ErrName, maxDepth)
	}
	if err := t.makeDirectories(path.Dir(name)); err != nil {
		return Info{}, false, err
	}
	place := name // with links at the end followed
	for range maxLinks {
		next, info, created, err := t.putAt(d, name, place, to)
		if next == "" {
			return info, created, err
		}
		place = next
	}
	return Info{}, false, refine(name, unix.ELOOP)
}

// putAt tries to put a draft at a name. If a link is there, it returns where that
// leads instead.
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
		return path.Dir(place) + "/" + old.Target, Info{}, false, nil // not cleaned: `..` is the kernel's affair
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
		step: Step{Size: d.size, From: filepath.Base(d.file.Name()), Staged: true, To: name},
	}
	info, err := t.rename(d, p, to)
	return "", info, created, err
}

func (to Target) allows(name string, old Info, created bool) error {
	switch {
	case created && to.IfEtag != "":
		return fmt.Errorf("%w: %s does not exist any more", ErrEtag, name)
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

// placing is a whole file that is to be put where its name says.
type placing struct {
	tree    *Tree
	file    *os.File
	from    int // the directory that the file's name is in
	dir     *os.File
	last    string // in dir
	name    string // from the workspace
	mode    uint32
	old     Info // what it replaces, unless created
	created bool
	step    Step
}

func (p placing) rename(to Target) (Info, error) {
	fd := int(p.file.Fd())
	if err := unix.Fchmod(fd, p.mode&0o7777); err != nil { // after the owner, which takes bits away
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
	_ = unix.Fstat(fd, &st) // it is done: what was known before is nearly right
	return newInfo(p.name, &st), nil
}

// freed is how much of a file's size the disk has again when a name of it goes: nothing while
// it has others, and nothing of holes.
func freed(dir *os.File, name string) int64 {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Nlink > 1 {
		return 0 // it is counted for certain in a while
	}
	return min(st.Size, st.Blocks*512)
}

// makeDirectories makes the directories of a path that do not exist.
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
	// By name and without following: if a command put a link there meanwhile, it is
	// the link that changes hands.
	if err := unix.Fchownat(int(dir.Fd()), last, t.owner.UID, t.owner.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return refine(name, err)
	}
	return nil
}
