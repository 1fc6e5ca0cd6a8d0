package box

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// maxDepth is how deep folders may be nested. A deeper path exceeds the longest path name, and would hide
// files from every count.
const maxDepth = 1000

// Usage is the room that a workspace and its home directory take on disk.
type Usage struct {
	Bytes, Inodes int64
	TooDeep       bool
}

// over returns how a limit is exceeded; empty if none is.
func (u Usage) over(l Limits) string {
	_, why := u.exceeds(l)
	return why
}

// exceeds returns which limit is exceeded and how; both are empty if none is.
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

// meter counts what is below some folders. It stops as soon as a limit is exceeded, so that a hostile tree
// costs no more than a full one.
type meter struct {
	limits Limits
	usage  Usage
	linked map[uint64]bool // files with several names whose bytes are counted
}

// measure counts folders of the sandbox. It follows no link and ignores files that vanish meanwhile.
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

// entryBuffers are buffers for folders' entries. os.File is not used: most workspaces are counted in less
// time than it takes to make one.
var entryBuffers = sync.Pool{New: func() any { return new([8192]byte) }}

// folder counts the contents of a folder and closes it.
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

// Reserve refuses a change that would make the workspace exceed its limits.
func (w *Workspace) Reserve(bytes, inodes int64) error {
	why, err := w.s.workspace.usage.reserve(w.limits, bytes, inodes, w.s.workspace.folders()...)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: with this change %s", ErrWorkspaceFull, why)
	}
	if err := w.s.node.slots.reserve(w.slot, bytes, inodes); err != nil {
		return err
	}
	if bytes > 0 {
		return w.CheckDiskSpace()
	}
	return nil
}

// CheckWrite refuses a change that alone exceeds the workspace's limits. A replacement counts in full, because
// it is written before the old file is removed.
func (w *Workspace) CheckWrite(bytes, inodes int64) error {
	if why := (Usage{Bytes: bytes, Inodes: inodes}).over(w.limits); why != "" {
		return fmt.Errorf("%w: with this change alone %s", ErrWorkspaceFull, why)
	}
	return w.CheckDiskSpace()
}

// CheckImport refuses a change that is larger than a workspace in which commands still start. A workspace that
// commands made larger than its limits is accepted: its files can be deleted only after it has arrived.
func (w *Workspace) CheckImport(bytes, inodes int64) error {
	if why := (Usage{Bytes: bytes, Inodes: inodes}).over(w.limits.far()); why != "" {
		return fmt.Errorf("%w: it alone %s", ErrWorkspaceFull, why)
	}
	return w.CheckDiskSpace()
}

// Limits returns the limits of the workspace and of all that runs in it.
func (w *Workspace) Limits() Limits { return w.limits }

// CheckDiskSpace refuses work that takes much room while the disk is nearly full.
func (w *Workspace) CheckDiskSpace() error { return w.s.node.checkDiskSpace() }

// Changed records what a change added; negative numbers are removals.
func (w *Workspace) Changed(bytes, inodes int64) { w.s.workspace.usage.add(bytes, inodes) }

// Recount makes the workspace be counted again before the next change.
func (w *Workspace) Recount() { w.s.workspace.usage.forget() }

// folders returns the folders that a workspace's limits bound together.
func (ws *workspace) folders() []string { return []string{ws.path("workspace"), ws.path("home")} }
