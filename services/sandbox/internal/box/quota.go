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

// quotaWatch records whether a command filled its workspace, if the file system limits the size: programs get
// that error and may print nothing. Only one goroutine uses it.
type quotaWatch struct {
	full   func() Hit // checks whether the workspace is full; nil where the file system does not limit its size
	before Hit        // what full returned before the start
	filled Hit        // what full first returned since, if the workspace was not full before
}

// watchQuota returns a watch for a command that is about to start. mu is held.
func (ws *workspace) watchQuota() (w quotaWatch) {
	if ws.node.o.Quota != nil {
		w.full = ws.full()
		w.before = w.full()
	}
	return w
}

// look records when the workspace has become full.
func (w *quotaWatch) look() {
	if w.full != nil && w.before.Limit == "" && w.filled.Limit == "" {
		w.filled = w.full()
	}
}
