package box

import (
	"fmt"
	"math"
)

// A workspace is on one node at a time; each place that it gets has a higher generation than the one
// before. A node that was unreachable when the workspace moved may return with its old copy and with
// commands that run in it. It refuses calls that name another generation. It deletes the copy when a call
// deletes the workspace or names a later generation.

// meant refuses a call for another node.
func (n *Node) meant(c Call) error {
	if c.Node != "" && c.Node != n.o.Name {
		return fmt.Errorf("%w: it is for %q, and this is %q: check the addresses of the nodes", ErrWrongNode, c.Node, n.o.Name)
	}
	return nil
}

// admitCall refuses a call for another node or another generation. mu is held.
func (ws *workspace) admitCall(c Call) error {
	if err := ws.node.meant(c); err != nil {
		return err
	}
	return ws.admit(c.Generation)
}

// replace removes a copy of a lower generation than requested: the workspace was moved away and comes back.
func (s *session) replace(c Call) error {
	if err := s.node.meant(c); err != nil {
		return err
	}
	s.workspace.mu.Lock()
	old := s.workspace.meta != nil && s.workspace.meta.Generation < c.Generation
	s.workspace.mu.Unlock()
	if !old {
		return nil
	}
	defer s.tasks.clear(ErrNoWorkspace, always)()
	s.mutations.mu.Lock()
	defer s.mutations.mu.Unlock()
	return s.remove(c.Generation-1, "the workspace was moved away from here")
}

// Fence refuses holders of the session with a lower epoch from now on. The generation does not matter: the
// epoch is the session's. It returns ErrNoWorkspace if there is nothing to fence.
func (n *Node) Fence(c Call) error {
	if err := n.meant(c); err != nil {
		return err
	}
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	return s.workspace.fence(c)
}

// Delete ends all commands in a session's workspace and deletes it, with all records of the session. A
// missing workspace counts as deleted. If generation is set, it deletes only a copy of at most that
// generation.
func (n *Node) Delete(k Key, generation int64) error {
	s, leave, err := n.sessions.enter(k)
	if err != nil {
		return err
	}
	defer leave()
	if generation == 0 {
		generation = math.MaxInt64
	}
	s.workspace.mu.Lock()
	nothing := s.workspace.meta == nil || s.workspace.meta.Generation > generation
	s.workspace.mu.Unlock()
	if nothing {
		return nil
	}
	defer s.tasks.clear(ErrNoWorkspace, always)()
	s.mutations.mu.Lock()
	defer s.mutations.mu.Unlock()
	return s.remove(generation, "the workspace was deleted")
}

// remove ends and deletes the workspace if its generation is at most most. The lock of mutations is held.
func (s *session) remove(most int64, why string) error {
	s.workspace.starts.Lock() // the warm-up of a sandbox must not finish after the others have ended either
	defer s.workspace.starts.Unlock()
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if s.workspace.meta == nil || s.workspace.meta.Generation > most {
		return nil
	}
	s.workspace.mu.Unlock()
	s.stopAll(why)
	s.workspace.mu.Lock()
	n := s.node
	n.o.Runner.Stop(s.path("workspace"))
	if err := n.dir.discard(s.dir); err != nil {
		return fmt.Errorf("delete the workspace: %w", err)
	}
	n.journal.forget(s.dir)
	n.slots.free(s.workspace.meta.Slot)
	s.execs.abandon()
	s.workspace.meta = nil
	s.workspace.usage.Forget()
	return nil
}

// stopAll ends all commands and waits for their end.
func (s *session) stopAll(why string) {
	running := s.running()
	for _, e := range running {
		e.stop(Outcome{Reason: Cancelled, Message: why})
	}
	for _, e := range running {
		<-e.done
	}
}
