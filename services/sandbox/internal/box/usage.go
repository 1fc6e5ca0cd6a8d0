package box

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// maxDepth is how deep folders may be nested. Deeper ones cannot be named in one
// path, and would be a way to hide files from every count.
const maxDepth = 1000

// Usage is what a workspace and its home directory take on the disk.
type Usage struct {
	Bytes, Inodes int64
	TooDeep       bool
}

// over says how a limit is exceeded; empty for none.
func (u Usage) over(l Limits) string {
	_, why := u.exceeds(l)
	return why
}

// exceeds says which limit is exceeded and how; both empty for none.
func (u Usage) exceeds(l Limits) (limit, why string) {
	switch {
	case u.TooDeep:
		return hitInodes, fmt.Sprintf("folders are nested more than %d deep", maxDepth)
	case u.Bytes > l.WorkspaceBytes:
		return hitBytes, fmt.Sprintf("it holds more than %d bytes", l.WorkspaceBytes)
	case u.Inodes > l.WorkspaceInodes:
		return hitInodes, fmt.Sprintf("it holds more than %d files and directories", l.WorkspaceInodes)
	}
	return "", ""
}

// meter counts what is below some folders, and stops as soon as a limit is
// exceeded, so that a hostile tree costs no more than a full one.
type meter struct {
	limits Limits
	usage  Usage
	linked map[uint64]bool // files with several names whose bytes were counted
}

// measure counts what is in folders of the sandbox's own. It follows no link. What vanishes
// meanwhile is not counted.
func measure(l Limits, folders ...string) (Usage, error) {
	m := &meter{limits: l}
	for _, f := range folders {
		fd, err := rights.Open(f)
		if err != nil {
			return Usage{}, err
		}
		if err := m.folder(fd, 0); err != nil {
			return Usage{}, err
		}
	}
	return m.usage, nil
}

// entryBuffers are where folders' entries are read into. Folders are read past os.File:
// most commands end in a workspace that is counted in less time than that takes to make.
var entryBuffers = sync.Pool{New: func() any { return new([8192]byte) }}

// folder counts what is in a folder, and closes it.
func (m *meter) folder(fd, depth int) error {
	defer func() { _ = unix.Close(fd) }()
	if depth > maxDepth {
		m.usage.TooDeep = true
		return nil
	}
	buffer := entryBuffers.Get().(*[8192]byte)
	defer entryBuffers.Put(buffer)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buffer[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return nil // the end, or it vanished
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names[:0])
		for _, name := range names {
			if m.usage.over(m.limits) != "" {
				return nil
			}
			if err := m.entry(fd, name, depth); err != nil {
				return err
			}
		}
	}
}

func (m *meter) entry(parent int, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil // it vanished
	}
	// A hard link counts as a further file: a walk of the workspace remembers each name, and a snapshot
	// stores each as a file.
	m.usage.Inodes++
	directory := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !directory && st.Nlink > 1 {
		if m.linked[st.Ino] {
			return nil
		}
		if m.linked == nil {
			m.linked = map[uint64]bool{}
		}
		m.linked[st.Ino] = true
	}
	m.usage.Bytes += st.Blocks * 512
	if !directory {
		return nil
	}
	fd, back, err := rights.Folder(parent, name, st.Mode)
	switch {
	case err == nil:
		defer back()
		return m.folder(fd, depth+1)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("count the workspace: %w", err)
	}
	return nil
}

// Reserve refuses a change that would make the workspace larger than it may be.
func (w *Workspace) Reserve(bytes, inodes int64) error {
	why, err := w.s.usage.reserve(w.limits, bytes, inodes, w.s.folders()...)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: with this change %s", ErrWorkspaceFull, why)
	}
	if err := w.s.node.reserveQuota(w.slot, bytes, inodes); err != nil {
		return err
	}
	w.s.books.bring(bytes)
	if bytes > 0 {
		return w.Room()
	}
	return nil
}

// Takes refuses what would alone be more than the workspace may hold. What takes the
// place of something else is measured by it, for it is written before that goes.
func (w *Workspace) Takes(bytes, inodes int64) error {
	if why := (Usage{Bytes: bytes, Inodes: inodes}).over(w.limits); why != "" {
		return fmt.Errorf("%w: with this change alone %s", ErrWorkspaceFull, why)
	}
	w.s.books.bring(bytes)
	return w.Room()
}

// Brings refuses what is more than a workspace can hold in which commands still start. One that
// they have made larger than it may be arrives as it is: where else could files be deleted?
func (w *Workspace) Brings(bytes, inodes int64) error {
	if why := (Usage{Bytes: bytes, Inodes: inodes}).over(w.limits.far()); why != "" {
		return fmt.Errorf("%w: it alone %s", ErrWorkspaceFull, why)
	}
	w.s.books.bring(bytes)
	return w.Room()
}

// Limits are what bounds it and all that runs in it.
func (w *Workspace) Limits() Limits { return w.limits }

// Room refuses what takes much of the disk while that is nearly full.
func (w *Workspace) Room() error { return w.s.node.room() }

// Changed notes what a change added; negative numbers are what it removed.
func (w *Workspace) Changed(bytes, inodes int64) { w.s.usage.add(bytes, inodes) }

// Recount has the workspace counted anew before the next change.
func (w *Workspace) Recount() { w.s.usage.forget() }

// folders are what a workspace's limits bound together.
func (s *session) folders() []string { return []string{s.path("workspace"), s.path("home")} }
