package box

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// clearUp makes room when the disk is nearly full, oldest session first. It removes expired results, marks
// and answers, and data that no snapshot needs any more. Unused sessions are not cleared otherwise. It
// stops as soon as there is room. Cancelling the context stops it between two sessions.
func (n *Node) clearUp(ctx context.Context) {
	if n.o.DiskSpace == nil || !n.o.DiskSpace.Tight() || n.o.Now().Sub(n.cleared) < reclaimPause {
		return
	}
	keys, err := n.byAge()
	if err != nil {
		n.o.Log.ErrorContext(ctx, "cannot list the workspaces to make room", "error", err)
		return
	}
	n.o.Log.WarnContext(ctx, "the disk is nearly full: removing unneeded files", "workspaces", len(keys))
	for _, k := range keys {
		if ctx.Err() != nil || !n.o.DiskSpace.Tight() {
			break
		}
		if err := n.reclaim(k); err != nil && !errors.Is(err, ErrNoWorkspace) {
			n.o.Log.WarnContext(ctx, "cannot make room in a workspace", "session", k.Session, "error", err)
		}
	}
	n.cleared = n.o.Now()
}

// occupied reports whether a session is in use, for example while its workspace is made.
func (n *Node) occupied(k Key) bool {
	n.mu.Lock()
	s := n.open[k]
	n.mu.Unlock()
	if s == nil {
		return false
	}
	if !s.workspace.mu.TryLock() {
		return true
	}
	s.workspace.mu.Unlock()
	return false
}

// reclaim removes what one session can do without. It skips an occupied session until the next time: a
// workspace that is being received may take as long as its sender likes.
func (n *Node) reclaim(k Key) error {
	if n.occupied(k) {
		return nil
	}
	s, leave, err := n.enter(k)
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
	if n.o.Reclaim == nil {
		return nil
	}
	defer w.RemoveSnapshots()()
	return n.o.Reclaim(w)
}

// byAge lists the sessions of the data directory, least recently changed first.
func (n *Node) byAge() ([]Key, error) {
	type aged struct {
		key Key
		at  time.Time
	}
	var all []aged
	tenants, err := os.ReadDir(n.o.Dir)
	if err != nil {
		return nil, err
	}
	for _, t := range tenants {
		if !t.IsDir() || strings.HasPrefix(t.Name(), ".") {
			continue
		}
		sessions, err := os.ReadDir(filepath.Join(n.o.Dir, t.Name()))
		if err != nil {
			return nil, err
		}
		for _, s := range sessions {
			st, err := os.Stat(filepath.Join(n.o.Dir, t.Name(), s.Name(), "execs"))
			if err != nil {
				continue // it is being made or deleted
			}
			all = append(all, aged{Key{Tenant: tenantOf(t.Name()), Session: s.Name()}, st.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.key.Session, b.key.Session)) })
	keys := make([]Key, len(all))
	for i, a := range all {
		keys[i] = a.key
	}
	return keys, nil
}
