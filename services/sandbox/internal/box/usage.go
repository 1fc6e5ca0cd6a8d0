package box

import (
	"fmt"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

// room returns how much the workspace and its home directory may take on the disk.
func (l Limits) room() disk.Room {
	return disk.Room{Bytes: l.WorkspaceBytes, Inodes: l.WorkspaceInodes}
}

// Reserve refuses a change that would make the workspace exceed its limits.
func (w *Workspace) Reserve(bytes, inodes int64) error {
	why, err := w.s.workspace.usage.Reserve(w.limits.room(), bytes, inodes, w.s.workspace.folders()...)
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
	if why := (disk.Size{Bytes: bytes, Inodes: inodes}).Over(w.limits.room()); why != "" {
		return fmt.Errorf("%w: with this change alone %s", ErrWorkspaceFull, why)
	}
	return w.CheckDiskSpace()
}

// CheckImport refuses a change that is larger than a workspace in which commands still start. A workspace that
// commands made larger than its limits is accepted: its files can be deleted only after it has arrived.
func (w *Workspace) CheckImport(bytes, inodes int64) error {
	if why := (disk.Size{Bytes: bytes, Inodes: inodes}).Over(w.limits.far().room()); why != "" {
		return fmt.Errorf("%w: it alone %s", ErrWorkspaceFull, why)
	}
	return w.CheckDiskSpace()
}

// Limits returns the limits of the workspace and of all that runs in it.
func (w *Workspace) Limits() Limits { return w.limits }

// CheckDiskSpace refuses work that takes much room while the disk is nearly full.
func (w *Workspace) CheckDiskSpace() error { return w.s.node.checkDiskSpace() }

// Changed records what a change added; negative numbers are removals.
func (w *Workspace) Changed(bytes, inodes int64) { w.s.workspace.usage.Add(bytes, inodes) }

// Recount makes the workspace be counted again before the next change.
func (w *Workspace) Recount() { w.s.workspace.usage.Forget() }

// folders returns the folders that a workspace's limits bound together.
func (ws *workspace) folders() []string { return []string{ws.path("workspace"), ws.path("home")} }
