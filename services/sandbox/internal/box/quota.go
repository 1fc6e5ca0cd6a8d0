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
