package box

import "fmt"

// Quota has the file system keep the size of workspaces. It is safe for concurrent
// use.
type Quota interface {
	// Keep bounds empty folders, and all that will be made in them, together. slot
	// tells workspaces apart. Again it changes the bounds.
	Keep(slot int, bytes, inodes int64, folders ...string) error
	// Release takes the bounds away.
	Release(slot int) error
	// Left says how many bytes and files there may be besides those that are there. At zero
	// and below the file system refuses more.
	Left(slot int) (bytes, inodes int64, err error)
}

// keepSize has the file system keep the size of a new workspace, or of one whose
// limits have changed. What is written is made beside the files first, in a folder
// that counts as well: a file does not move between two workspaces' quotas.
func (s *session) keepSize(m *meta, folders ...string) error {
	if s.node.o.Quota == nil {
		return nil
	}
	l := s.node.o.Limits.under(m.Limits)
	if err := s.node.o.Quota.Keep(m.Slot, l.WorkspaceBytes, l.WorkspaceInodes, folders...); err != nil {
		return fmt.Errorf("%w: %w", ErrIsolation, err)
	}
	return nil
}

// freeSlot gives a workspace's slot back, and what the file system keeps for it.
func (n *Node) freeSlot(slot int) {
	if n.o.Quota != nil {
		if err := n.o.Quota.Release(slot); err != nil {
			n.o.Log.Error("cannot take the file system's limit of a workspace away", "error", err)
		}
	}
	n.slots.free(slot)
}

// full says which limit of the workspace the file system has no more room under; empty
// for none. mu is held.
func (s *session) full() func() Hit {
	q, slot, l := s.node.o.Quota, s.meta.Slot, s.limits()
	return func() Hit {
		bytes, inodes, err := q.Left(slot)
		switch {
		case err != nil:
			s.node.o.Log.Error("cannot ask the file system how full a workspace is", "error", err)
		case inodes <= 0:
			return Hit{hitInodes, fmt.Sprintf("the workspace is full: with the home directory it may have %d files and directories", l.WorkspaceInodes)}
		case bytes <= 0:
			return Hit{hitBytes, fmt.Sprintf("the workspace is full: with the home directory it may have %d bytes", l.WorkspaceBytes)}
		}
		return Hit{}
	}
}

// reserveQuota refuses a change of the service's own that the file system would refuse commands.
// It knows of more than can be counted, and lets the service do what it likes.
func (n *Node) reserveQuota(slot int, bytes, inodes int64) error {
	if n.o.Quota == nil || bytes <= 0 && inodes <= 0 {
		return nil
	}
	b, i, err := n.o.Quota.Left(slot)
	if err == nil && (bytes > b || inodes > i) {
		err = fmt.Errorf("%w: %d bytes and %d files are left", ErrWorkspaceFull, max(b, 0), max(i, 0))
	}
	return err
}

// watchQuota has the command's end tell whether it filled the workspace, where the file
// system keeps its size: programs hear of it, and may say nothing. mu is held.
func (s *session) watchQuota(e *Exec) {
	if s.node.o.Quota != nil {
		e.full = s.full()
		e.before = e.full()
	}
}

// lookAtQuota notes when the workspace has become full.
func (e *Exec) lookAtQuota() {
	if e.full != nil && e.before.Limit == "" && e.filled.Limit == "" {
		e.filled = e.full()
	}
}
