package box

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Freezer is a Runner that can stop what runs in a workspace for a while.
type Freezer interface {
	// Freeze stops every process of a workspace and returns when all have stopped.
	// thaw must be called, once, and lets them go on. After an error nothing is
	// stopped.
	Freeze(ctx context.Context, workspace string) (thaw func(), err error)
}

// Busy says whether commands run in the workspace that Hold can stop.
func (w *Workspace) Busy() bool {
	_, ok := w.s.node.o.Runner.(Freezer)
	return ok && len(w.s.running()) > 0
}

// Hold keeps a workspace still: nothing starts in it, and what runs there is
// stopped if the runner can do that. release lets all go on, and returns how long
// processes were stopped; zero when none were. It may be called again. Only a
// Change may hold its workspace, because other changes wait for it.
func (w *Workspace) Hold(ctx context.Context) (release func() time.Duration, err error) {
	w.s.starts.Lock()
	var thaw func()
	if f, ok := w.s.node.o.Runner.(Freezer); ok && len(w.s.running()) > 0 {
		if thaw, err = f.Freeze(ctx, w.Dir); err != nil {
			w.s.starts.Unlock()
			return nil, fmt.Errorf("stop the commands that run: %w", err)
		}
	}
	begin := time.Now()
	return sync.OnceValue(func() (frozen time.Duration) {
		if thaw != nil {
			thaw()
			frozen = time.Since(begin)
		}
		w.s.starts.Unlock()
		return frozen
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
