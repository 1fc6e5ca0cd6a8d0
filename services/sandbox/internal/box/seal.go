package box

import (
	"cmp"
	"context"
	"fmt"
)

// A workspace that is about to move to another node is sealed first: a change after its last snapshot would
// be answered and then lost. The seal is on disk. It ends with the workspace, with Unseal, or when the
// session has a later holder, because the holder that sealed it can no longer move it.

// Seal freezes the state of a workspace. It ends running commands; until Unseal no command starts and
// nothing changes. Snapshots can still be made and deleted.
func (n *Node) Seal(ctx context.Context, c Call) error {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := s.begin(c); err != nil {
		return err
	}
	unseals := s.tasks.unsealed()
	defer s.tasks.clear(ErrSealed, unseals)()
	s.mutations.mu.Lock()
	defer s.mutations.mu.Unlock()
	s.workspace.starts.Lock()
	defer s.workspace.starts.Unlock()
	if err := s.setSeal(ctx, c, true, unseals); err != nil {
		return err
	}
	s.stopAll("the workspace is about to be moved to another machine")
	n.o.Runner.Stop(s.path("workspace"))
	return nil
}

// Unseal ends a seal.
func (n *Node) Unseal(ctx context.Context, c Call) error {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	return s.setSeal(ctx, c, false, always)
}

// setSeal records whether the workspace is sealed. A seal may have waited for long and been lifted
// meanwhile, as the count of unseals before it tells. If its caller no longer waits, the unseal may follow, or may already have happened.
func (s *session) setSeal(ctx context.Context, c Call, sealed bool, since int64) error {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.workspace.admitCall(c)); err != nil {
		return err
	}
	if s.tasks.lifted(since) {
		return fmt.Errorf("%w: the workspace was unsealed while its seal waited", ErrCancelled)
	}
	if err := s.workspace.fence(c); err != nil {
		return err
	}
	if !sealed {
		s.tasks.unseal() // tells waiting seals; these keep tasks from starting
	}
	if s.workspace.meta.Sealed == sealed {
		return nil
	}
	m := *s.workspace.meta
	m.Sealed = sealed
	if err := save(s.path(metaFile), m); err != nil {
		return fmt.Errorf("record whether the workspace is sealed: %w", err)
	}
	s.workspace.meta = &m
	return nil
}

// unsealed returns an error if the workspace is sealed.
func (ws *workspace) unsealed() error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.meta.unsealed()
}

// unsealed is the same, with mu held. A missing workspace is refused elsewhere.
func (m *meta) unsealed() error {
	if m != nil && m.Sealed {
		return ErrSealed
	}
	return nil
}
