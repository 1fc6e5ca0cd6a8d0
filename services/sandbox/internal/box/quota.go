package box

import "fmt"

// Quota makes the file system limit the size of workspaces. It is safe for concurrent use.
type Quota interface {
	// Keep limits empty folders, and all that will be made in them, together. slot identifies the
	// workspace. A second call changes the limits.
	Keep(slot int, bytes, inodes int64, folders ...string) error
	// Release removes the limits.
	Release(slot int) error
	// Remaining returns how many more bytes and files fit. At zero and below the file system refuses more.
	Remaining(slot int) (bytes, inodes int64, err error)
}

// keepSize makes the file system limit the size of a workspace that is new or whose limits have changed.
// Files are first written in a folder beside the workspace. That folder counts as well, because a file
// cannot move between quotas.
func (ws *workspace) keepSize(m *meta, folders ...string) error {
	if ws.node.o.Quota == nil {
		return nil
	}
	l := ws.node.o.Limits.under(m.Limits)
	if err := ws.node.o.Quota.Keep(m.Slot, l.WorkspaceBytes, l.WorkspaceInodes, folders...); err != nil {
		return fmt.Errorf("%w: %w", ErrIsolation, err)
	}
	return nil
}

// freeSlot returns a workspace's slot and removes its limits in the file system.
func (n *Node) freeSlot(slot int) {
	if n.o.Quota != nil {
		if err := n.o.Quota.Release(slot); err != nil {
			n.o.Log.Error("cannot remove the file system's limit of a workspace", "error", err)
		}
	}
	n.slots.free(slot)
}

// full returns a function that reports which limit of the workspace is used up in the file system, or an
// empty Hit. mu is held.
func (ws *workspace) full() func() Hit {
	q, slot, l := ws.node.o.Quota, ws.meta.Slot, ws.limits()
	return func() Hit {
		bytes, inodes, err := q.Remaining(slot)
		switch {
		case err != nil:
			ws.node.o.Log.Error("cannot read the usage of a workspace from the file system", "error", err)
		case inodes <= 0:
			return Hit{hitInodes, fmt.Sprintf("the workspace is full: with the home directory it may have %d files and directories", l.WorkspaceInodes)}
		case bytes <= 0:
			return Hit{hitBytes, fmt.Sprintf("the workspace is full: with the home directory it may have %d bytes", l.WorkspaceBytes)}
		}
		return Hit{}
	}
}

// reserveQuota refuses a change by the service that the file system would refuse to commands. The quota
// counts more than the tally does, and does not limit the service itself.
func (n *Node) reserveQuota(slot int, bytes, inodes int64) error {
	if n.o.Quota == nil || bytes <= 0 && inodes <= 0 {
		return nil
	}
	b, i, err := n.o.Quota.Remaining(slot)
	if err == nil && (bytes > b || inodes > i) {
		err = fmt.Errorf("%w: %d bytes and %d files are left", ErrWorkspaceFull, max(b, 0), max(i, 0))
	}
	return err
}

// watchQuota makes the command's end report whether it filled the workspace, if the file system limits the
// size: programs get that error and may print nothing. mu is held.
func (ws *workspace) watchQuota(e *Exec) {
	if ws.node.o.Quota != nil {
		e.full = ws.full()
		e.before = e.full()
	}
}

// lookAtQuota records when the workspace has become full.
func (e *Exec) lookAtQuota() {
	if e.full != nil && e.before.Limit == "" && e.filled.Limit == "" {
		e.filled = e.full()
	}
}
