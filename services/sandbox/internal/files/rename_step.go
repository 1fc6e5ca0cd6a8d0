package files

import (
	"errors"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mark identifies a file, also against later files: inode numbers are reused. Two files of the same few
// milliseconds may have equal marks, because the kernel's clock is that coarse.
type Mark struct {
	Inode uint64 `json:"inode"`
	Born  int64  `json:"born,omitempty"` // in nanoseconds; zero if the file system does not record it
}

// RenameStep is how a change takes effect: at one moment one file gets another name, or loses its name.
// After a crash it shows whether that moment has passed.
type RenameStep struct {
	File Mark  `json:"file"`
	Size int64 `json:"size,omitempty"` // of a draft
	// From is the name before. If Staged, it is in the staging folder, which only the service changes;
	// otherwise it is in the workspace.
	From   string `json:"from"`
	Staged bool   `json:"staged,omitempty"`
	To     string `json:"to,omitempty"`    // the name afterwards; empty: none
	Mount  string `json:"mount,omitempty"` // the alias of its mount
	// Piecemeal means that a directory's contents are removed before the directory.
	Piecemeal bool `json:"piecemeal,omitempty"`
}

// below returns the step as seen by the workspace that shows a mount's files at an alias.
func (p RenameStep) below(alias string) RenameStep {
	p.Mount = alias
	if !p.Staged {
		p.From = path.Join(alias, p.From)
	}
	if p.To != "" {
		p.To = path.Join(alias, p.To)
	}
	return p
}

// Taken reports whether a step was taken, and whether that is known. sameBoot means that the machine has
// not crashed since, so the files are as the service left them.
func (s *Space) Taken(p RenameStep, sameBoot bool) (taken, known bool) {
	if !p.Staged && s.Alias(p.From) != p.Mount || p.To != "" && s.Alias(p.To) != p.Mount {
		return false, false // the mount is gone or replaced
	}
	from, err := s.stands(p.From, p.Staged, p.File)
	switch {
	case err != nil:
		return false, false
	case from:
		return false, !p.Piecemeal
	case p.To == "":
		return true, true
	}
	to, err := s.stands(p.To, false, p.File)
	switch {
	case err != nil && !errors.Is(err, errShut):
		return false, false
	case !to: // a file that has left the staging folder was at its destination
		return true, p.Staged && sameBoot
	case p.Staged && !sameBoot: // its content may not have reached the disk
		i, err := s.Stat(p.To)
		return true, err == nil && i.Type != Directory && (i.Type != Regular || i.Size == p.Size)
	}
	return true, true
}

// stands reports whether a name leads to a file, directly or by a link.
func (s *Space) stands(name string, staged bool, file Mark) (bool, error) {
	if staged {
		m, err := mark(unix.AT_FDCWD, filepath.Join(s.staging, name))
		if errors.Is(err, unix.ENOENT) {
			return false, nil
		}
		return m == file, err
	}
	for _, follow := range []bool{false, true} {
		switch m, err := s.Mark(name, follow); {
		case errors.Is(err, errShut):
			return false, err
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrWrongType), errors.Is(err, ErrEscapes):
		case err != nil:
			return false, err
		case m == file:
			return true, nil
		}
	}
	return false, nil
}

// Mark returns the mark of the file of a name.
func (t *Tree) Mark(name string, follow bool) (Mark, error) {
	name, err := Clean(name)
	if err != nil {
		return Mark{}, err
	}
	flags := uint64(unix.O_PATH)
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	f, err := t.open(name, flags)
	if err != nil {
		return Mark{}, err
	}
	defer func() { _ = f.Close() }()
	return mark(int(f.Fd()), "")
}

// mark returns the mark of a file in an open directory, or of the open file itself if last is empty.
func mark(fd int, last string) (Mark, error) {
	var st unix.Statx_t
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC
	if err := unix.Statx(fd, last, flags, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return Mark{}, &os.PathError{Op: "statx", Path: last, Err: err}
	}
	m := Mark{Inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		m.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return m, nil
}
