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

// Room says whether the disks that the node writes to have room.
type Room interface {
	// Check returns an error when new work is to be refused.
	Check() error
	// Tight says that it is time to clear up.
	Tight() bool
}

// reclaimPause is how long after a clearing the next one may be.
const reclaimPause = 5 * time.Minute

// room refuses new work while the disk is nearly full.
func (n *Node) room() error {
	if n.o.Room == nil {
		return nil
	}
	return n.o.Room.Check()
}

// full says whether there is no room, or nobody knows.
func (n *Node) full() bool { return n.room() != nil }

// Ready says whether the node takes new work.
func (n *Node) Ready() error { return n.room() }

// clearUp makes room when the disk is nearly full: the oldest sessions first, of
// each the results, marks and answers whose time is over, and what no snapshot holds
// any more. Sessions that nobody uses are not looked at otherwise. It stops as soon
// as there is room. The context ends it between two sessions.
func (n *Node) clearUp(ctx context.Context) {
	if n.o.Room == nil || !n.o.Room.Tight() || n.o.Now().Sub(n.cleared) < reclaimPause {
		return
	}
	keys, err := n.byAge()
	if err != nil {
		n.o.Log.ErrorContext(ctx, "cannot list the workspaces to make room", "error", err)
		return
	}
	n.o.Log.WarnContext(ctx, "the disk is nearly full: removing what is not needed any more", "workspaces", len(keys))
	for _, k := range keys {
		if ctx.Err() != nil || !n.o.Room.Tight() {
			break
		}
		if err := n.reclaim(k); err != nil && !errors.Is(err, ErrNoWorkspace) {
			n.o.Log.WarnContext(ctx, "cannot make room in a workspace", "session", k.Session, "error", err)
		}
	}
	n.cleared = n.o.Now()
}

// occupied says that somebody works on a session, as its workspace is made for one.
func (n *Node) occupied(k Key) bool {
	n.mu.Lock()
	s := n.open[k]
	n.mu.Unlock()
	if s == nil {
		return false
	}
	if !s.mu.TryLock() {
		return true
	}
	s.mu.Unlock()
	return false
}

// reclaim removes what one session can do without. One that is occupied is left to the
// next time: its workspace may take as long to come as whoever sends it likes.
func (n *Node) reclaim(k Key) error {
	if n.occupied(k) {
		return nil
	}
	s, leave, err := n.enter(k)
	if err != nil {
		return err
	}
	defer leave()
	s.changes.Lock()
	defer s.changes.Unlock()
	s.mu.Lock()
	if s.meta == nil {
		s.mu.Unlock()
		return ErrNoWorkspace
	}
	w := s.workspace()
	s.mu.Unlock()
	s.prune()
	if n.o.Reclaim == nil {
		return nil
	}
	defer w.RemoveSnapshots()()
	return n.o.Reclaim(w)
}

// byAge lists the sessions of the data directory, those first that have not changed
// for longest.
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
				continue // it is being made, or deleted
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
