package box

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Busy reports whether commands run in the workspace.
func (w *Workspace) Busy() bool { return len(w.s.running()) > 0 }

// Freeze keeps a workspace still: no command starts, and running ones are stopped if the runner can do that.
// release resumes them and returns how long processes were stopped, or zero if none were. release may be
// called again. Only a Change may hold its workspace, because other changes wait for it.
func (w *Workspace) Freeze(ctx context.Context) (release func() time.Duration, err error) {
	w.s.workspace.starts.Lock()
	begin := time.Now()
	frozen, thaw, err := w.s.node.o.Runner.Freeze(ctx, w.Dir)
	if err != nil {
		w.s.workspace.starts.Unlock()
		return nil, fmt.Errorf("stop the commands that run: %w", err)
	}
	return sync.OnceValue(func() (stopped time.Duration) {
		thaw()
		if frozen {
			stopped = time.Since(begin)
		}
		w.s.workspace.starts.Unlock()
		return stopped
	}), nil
}

// edits counts what may have changed a workspace's files, and keeps a value for as long as nothing has.
type edits struct {
	count int64 // of starts of commands and of changes
	at    int64 // the count at which value was remembered
	value any
}

// Mark identifies the state of a frozen workspace's files. It is not ok while a command runs, because that may change
// them at any moment.
func (w *Workspace) Mark() (mark int64, ok bool) {
	ws := w.s.workspace
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.edits.count, !ws.node.o.Escapes && len(ws.execs.live()) == 0
}

// Remember keeps a value for as long as the files are as they were at a mark.
func (w *Workspace) Remember(mark int64, value any) {
	ws := w.s.workspace
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.edits.at, ws.edits.value = mark, value
}

// Unchanged returns the remembered value, or nil if the files may have changed since. A change that the host makes in
// the node's folders goes unnoticed.
func (w *Workspace) Unchanged() any {
	ws := w.s.workspace
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.edits.at != ws.edits.count || len(ws.execs.live()) > 0 {
		return nil
	}
	return ws.edits.value
}

// edited notes that the files may change from now on.
func (ws *workspace) edited() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.edits.count++
}

// ReadSnapshots keeps others from removing snapshots until release is called.
func (w *Workspace) ReadSnapshots() (release func()) {
	w.s.workspace.kept.RLock()
	return w.s.workspace.kept.RUnlock
}

// RemoveSnapshots waits for readers of snapshots, and keeps them out until release is called.
func (w *Workspace) RemoveSnapshots() (release func()) {
	w.s.workspace.kept.Lock()
	return w.s.workspace.kept.Unlock
}

// PushSnapshots keeps others from copying the snapshots elsewhere until release is called. The context ends
// with the workspace's deletion. The deletion waits for release, so that nothing is copied afterwards.
func (w *Workspace) PushSnapshots(ctx context.Context) (_ context.Context, release func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	forget, err := w.s.addTask(cancel)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	w.s.tasks.pushes.Lock()
	release = func() {
		w.s.tasks.pushes.Unlock()
		forget()
		cancel(nil)
	}
	w.s.workspace.mu.Lock()
	err = w.s.workspace.admit(w.Generation)
	w.s.workspace.mu.Unlock()
	if err = cmp.Or(context.Cause(ctx), err); err != nil {
		release()
		return nil, nil, err
	}
	return ctx, release, nil
}

// Admit returns a session's workspace to a caller that holds the session. The caller must call release.
func (n *Node) Admit(c Call) (w *Workspace, release func(), err error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return nil, nil, err
	}
	if w, err = s.begin(c); err != nil {
		leave()
		return nil, nil, err
	}
	return w, leave, nil
}
