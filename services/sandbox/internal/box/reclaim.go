package box

import (
	"context"
	"errors"
	"time"
)

// DiskSpace reports whether disks that the node writes to have room.
type DiskSpace interface {
	// Check returns an error if new work must be refused.
	Check() error
	// Tight reports whether it is time to reclaim disk space.
	Tight() bool
	// Low reports whether half of what must stay free is gone.
	Low() bool
	// Free returns how many bytes and inodes are free where there are least. Unknown numbers are zero.
	Free() (bytes, inodes int64)
}

// reclaimPause is the shortest time between two clearings.
const reclaimPause = 5 * time.Minute

// checkDiskSpace refuses new work while the disk is nearly full.
func (n *Node) checkDiskSpace() error {
	if n.o.DiskSpace == nil {
		return nil
	}
	return n.o.DiskSpace.Check()
}

// Ready returns an error if the node takes no new work.
func (n *Node) Ready() error { return n.checkDiskSpace() }

// reclaimer makes room when the disk is nearly full. Only one goroutine uses it.
type reclaimer struct {
	node    *Node
	cleared time.Time // when room was last made
}

// clearUp makes room when the disk is nearly full, oldest session first. It removes expired results, marks
// and answers, and data that no snapshot needs any more. Unused sessions are not cleared otherwise. It
// stops as soon as there is room. Cancelling the context stops it between two sessions.
func (r *reclaimer) clearUp(ctx context.Context) {
	o := r.node.o
	if o.DiskSpace == nil || !o.DiskSpace.Tight() || o.Now().Sub(r.cleared) < reclaimPause {
		return
	}
	keys, err := r.node.dir.byAge()
	if err != nil {
		o.Log.ErrorContext(ctx, "cannot list the workspaces to make room", "error", err)
		return
	}
	o.Log.WarnContext(ctx, "the disk is nearly full: removing unneeded files", "workspaces", len(keys))
	for _, k := range keys {
		if ctx.Err() != nil || !o.DiskSpace.Tight() {
			break
		}
		if err := r.reclaim(k); err != nil && !errors.Is(err, ErrNoWorkspace) {
			o.Log.WarnContext(ctx, "cannot make room in a workspace", "session", k.Session, "error", err)
		}
	}
	r.cleared = o.Now()
}

// reclaim removes what one session can do without. It skips an occupied session until the next time: a
// workspace that is being received may take as long as its sender likes.
func (r *reclaimer) reclaim(k Key) error {
	if r.node.sessions.occupied(k) {
		return nil
	}
	s, leave, err := r.node.sessions.enter(k)
	if err != nil {
		return err
	}
	defer leave()
	s.mutations.mu.Lock()
	defer s.mutations.mu.Unlock()
	s.workspace.mu.Lock()
	if s.workspace.meta == nil {
		s.workspace.mu.Unlock()
		return ErrNoWorkspace
	}
	w := s.view()
	s.workspace.mu.Unlock()
	s.prune()
	if r.node.o.Upkeep.Reclaim == nil {
		return nil
	}
	defer w.RemoveSnapshots()()
	return r.node.o.Upkeep.Reclaim(w)
}
