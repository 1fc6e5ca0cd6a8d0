package box

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Busy says whether commands run in the workspace.
func (w *Workspace) Busy() bool { return len(w.s.running()) > 0 }

// Hold keeps a workspace still: nothing starts in it, and what runs there is
// stopped if the runner can do that. release lets all go on, and returns how long
// processes were stopped; zero when none were. It may be called again. Only a
// Change may hold its workspace, because other changes wait for it.
func (w *Workspace) Hold(ctx context.Context) (release func() time.Duration, err error) {
	w.s.starts.Lock()
	begin := time.Now()
	frozen, thaw, err := w.s.node.o.Runner.Freeze(ctx, w.Dir)
	if err != nil {
		w.s.starts.Unlock()
		return nil, fmt.Errorf("stop the commands that run: %w", err)
	}
	return sync.OnceValue(func() (stopped time.Duration) {
		thaw()
		if frozen {
			stopped = time.Since(begin)
		}
		w.s.starts.Unlock()
		return stopped
	}), nil
}

// ReadSnapshots keeps others from removing snapshots until release is called.
func (w *Workspace) ReadSnapshots() (release func()) {
	w.s.kept.RLock()
	return w.s.kept.RUnlock
}

// RemoveSnapshots waits for those who read snapshots, and keeps them out until
// release is called.
func (w *Workspace) RemoveSnapshots() (release func()) {
	w.s.kept.Lock()
	return w.s.kept.Unlock
}

// PushSnapshots keeps others from copying the snapshots elsewhere, and from
// removing them, until release is called.
func (w *Workspace) PushSnapshots() (release func()) {
	w.s.pushes.Lock()
	read := w.ReadSnapshots()
	return func() {
		read()
		w.s.pushes.Unlock()
	}
}

// Admit returns a session's workspace to a caller who holds the session. release
// must be called.
func (n *Node) Admit(c Call, generation int64) (w *Workspace, release func(), err error) {
	s, leave, err := n.enter(c.Key)
	if err != nil {
		return nil, nil, err
	}
	if w, err = s.begin(c, generation); err != nil {
		leave()
		return nil, nil, err
	}
	return w, leave, nil
}
