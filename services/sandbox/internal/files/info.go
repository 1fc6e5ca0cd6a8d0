package files

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// Type is the type of a file.
type Type int

// Types of files.
const (
	Regular Type = iota + 1
	Directory
	Symlink
	Other
)

// Info describes a file.
type Info struct {
	Path     string // relative to the workspace
	Type     Type
	Size     int64
	Mode     uint32 // permission bits
	Modified time.Time
	Target   string // of a link
	Etag     string // of a regular file: changes whenever its content does
}

func newInfo(name string, st *unix.Stat_t) Info {
	i := Info{
		Path: name, Size: st.Size, Mode: st.Mode & 0o7777,
		Modified: time.Unix(st.Mtim.Unix()).UTC(),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		// A command can set the time of a file's last change, but not that of the last change of its state
		// (ctime).
		i.Type = Regular
		i.Etag = fmt.Sprintf("%x-%x-%x-%x", st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
	case unix.S_IFDIR:
		i.Type = Directory
	case unix.S_IFLNK:
		i.Type = Symlink
	default:
		i.Type = Other
	}
	return i
}

// Stat describes a file, without following a link at its end.
func (t *Tree) Stat(name string) (Info, error) {
	name, err := Clean(name)
	if err != nil {
		return Info{}, err
	}
	f, err := t.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = f.Close() }()
	return describe(int(f.Fd()), "", name)
}

// describe describes a file in an open directory, or the open file itself if last is empty.
func describe(fd int, last, name string) (Info, error) {
	i, err := look(fd, last, name)
	if err != nil {
		return Info{}, refine(name, err)
	}
	return i, nil
}

// look is describe with the kernel's own errors.
func look(fd int, last, name string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, last, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH); err != nil {
		return Info{}, err
	}
	i := newInfo(name, &st)
	if i.Type == Symlink {
		target, err := readLink(fd, last)
		if err != nil {
			return Info{}, err
		}
		i.Target = target
	}
	return i, nil
}

// List lists a directory by name, from the first name after the given one, and reports whether there are
// more. It leaves out names that match a pattern in ignore.
func (t *Tree) List(ctx context.Context, name, after string, limit int, ignore []string) ([]Info, bool, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, false, err
	}
	skip, err := readPatterns(ignore)
	if err != nil {
		return nil, false, err
	}
	dir, err := t.directory(name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, false, err
	}
	slices.Sort(names)
	from, found := slices.BinarySearch(names, after)
	if found {
		from++
	}
	var all []Info
	for _, last := range names[from:] {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		full := path.Join(name, last)
		if ignored(skip, last, full) || t.Rules.denies(path.Join(t.alias, name), path.Join(t.alias, full)) {
			continue
		}
		if len(all) == limit {
			return all, true, nil
		}
		i, err := describe(int(dir.Fd()), last, full)
		if errors.Is(err, ErrNotFound) {
			continue // it vanished
		}
		if err != nil {
			return nil, false, err
		}
		all = append(all, i)
	}
	return all, false, nil
}

func ignored(patterns []reading, last, full string) bool {
	if len(patterns) == 0 {
		return false
	}
	last, full = filename.Encode(last), filename.Encode(full)
	for _, p := range patterns {
		if p.match(last) || p.match(full) {
			return true
		}
	}
	return false
}
