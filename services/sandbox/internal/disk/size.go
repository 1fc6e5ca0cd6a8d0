// Package disk counts what folders take on the disk, as seldom as their limits allow.
package disk

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

// The limits that a size may exceed, as their settings are called.
const (
	Bytes  = "workspace-bytes"
	Inodes = "workspace-inodes"
)

// Room is how much some folders may take together.
type Room struct {
	Bytes  int64
	Inodes int64 // files and directories
}

// Size is what some folders take together.
type Size struct {
	Bytes, Inodes int64
	TooDeep       bool // folders are nested deeper than anything counts
}

// Over returns how a limit is exceeded; empty if none is.
func (u Size) Over(l Room) string {
	_, why := u.Exceeds(l)
	return why
}

// Exceeds returns which limit is exceeded and how; both are empty if none is.
func (u Size) Exceeds(l Room) (limit, why string) {
	switch {
	case u.TooDeep:
		return Inodes, fmt.Sprintf("folders are nested more than %d deep", maxDepth)
	case u.Bytes > l.Bytes:
		return Bytes, fmt.Sprintf("it holds more than %d bytes", l.Bytes)
	case u.Inodes > l.Inodes:
		return Inodes, fmt.Sprintf("it holds more than %d files and directories", l.Inodes)
	}
	return "", ""
}

// meter counts what is below some folders. It stops as soon as a limit is exceeded, so that a hostile tree
// costs no more than a full one.
type meter struct {
	room   Room
	size   Size
	linked map[uint64]bool // files with several names whose bytes are counted
}

// Measure counts folders of the sandbox. It follows no link and ignores files that vanish meanwhile.
func Measure(l Room, folders ...string) (Size, error) {
	m := &meter{room: l}
	for _, f := range folders {
		fd, err := rights.Open(f)
		if err != nil {
			return Size{}, err
		}
		if err := m.folder(fd, 0); err != nil {
			return Size{}, err
		}
	}
	return m.size, nil
}

// entryBuffers are buffers for folders' entries. os.File is not used: most workspaces are counted in less
// time than it takes to make one.
var entryBuffers = sync.Pool{New: func() any { return new([8192]byte) }}

// folder counts the contents of a folder and closes it.
func (m *meter) folder(fd, depth int) error {
	defer func() { _ = unix.Close(fd) }()
	if depth > maxDepth {
		m.size.TooDeep = true
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
			if m.size.Over(m.room) != "" {
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
	m.size.Inodes++
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
	m.size.Bytes += st.Blocks * 512
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
