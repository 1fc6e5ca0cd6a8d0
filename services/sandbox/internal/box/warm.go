package box

import "context"

// Warm makes a session's sandbox in the background, so that its first command need not wait. It makes one
// at a time. In a burst of sessions the others are left to their first commands: many at once would take
// the processors from running work. Errors are left to the first command.
func (n *Node) Warm(ctx context.Context, c Call) {
	if !n.capacity.reserveWarm() {
		return
	}
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		n.capacity.releaseWarm()
		return
	}
	go func() {
		defer n.capacity.releaseWarm()
		defer leave()
		if err := s.warm(context.WithoutCancel(ctx), c); err != nil {
			n.o.Log.DebugContext(ctx, "cannot make a sandbox ahead of its first command", "error", err)
		}
	}()
}

// warm makes the sandbox for the caller's next command. It skips a session whose starts are blocked, for
// example by a deletion: a wait would delay other sessions.
func (s *session) warm(ctx context.Context, c Call) error {
	if !s.workspace.starts.TryRLock() {
		return nil
	}
	defer s.workspace.starts.RUnlock()
	sandbox, err := s.workspace.sandboxFor(c)
	if err != nil {
		return err
	}
	return s.node.o.Runner.Warm(ctx, sandbox)
}

// sandboxFor returns the sandbox that a command of the caller would have.
func (ws *workspace) sandboxFor(c Call) (Sandbox, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.meta == nil {
		return Sandbox{}, ErrNoWorkspace
	}
	if err := ws.meta.unsealed(); err != nil {
		return Sandbox{}, err
	}
	mounts, _, _, err := ws.surroundings(c)
	return ws.sandbox(mounts, c.User), err
}
