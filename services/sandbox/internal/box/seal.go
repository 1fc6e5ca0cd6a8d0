package box

import (
	"cmp"
	"context"
	"fmt"
)

// A workspace that is about to be moved to another node is sealed first: what is done to
// it after its last snapshot would be lost, though it was answered. The seal is on the
// disk, and ends with the workspace, or when whoever made it stays after all, or when
// the session has a later holder: the one that sealed it cannot move it any more.

// Seal keeps a workspace as it is: what runs in it is ended, and nothing starts there and
// nothing is changed until Unseal. Snapshots can be made and deleted.
func (n *Node) Seal(ctx context.Context, c Call) error {
	s, leave, err := n.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := s.begin(c, 0); err != nil {
		return err
	}
	defer s.clearTasks(ErrSealed)()
	s.changes.Lock()
	defer s.changes.Unlock()
	s.starts.Lock()
	defer s.starts.Unlock()
	if err := s.setSeal(ctx, c, true); err != nil {
		return err
	}
	s.stopAll("the workspace is about to be moved to another machine")
	n.o.Runner.Stop(s.path("workspace"))
	return nil
}

// Unseal lets a workspace be changed again.
func (n *Node) Unseal(ctx context.Context, c Call) error {
	s, leave, err := n.enter(c.Key)
	if err != nil {
		return err
	}
	defer leave()
	return s.setSeal(ctx, c, false)
}

// setSeal remembers whether the workspace is sealed. A seal may have waited for long: if
// nobody waits for it any more, it may have been lifted already.
func (s *session) setSeal(ctx context.Context, c Call, sealed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.admitCall(c, 0)); err != nil {
		return err
	}
	if err := s.fence(c.Epoch); err != nil {
		return err
	}
	if s.meta.Sealed == sealed {
		return nil
	}
	m := *s.meta
	m.Sealed = sealed
	if err := save(s.path(metaFile), m); err != nil {
		return fmt.Errorf("remember whether the workspace is sealed: %w", err)
	}
	s.meta = &m
	return nil
}

// unsealed refuses to change a workspace that is sealed.
func (s *session) unsealed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.unsealed()
}

// unsealed is the same, where mu is held. What has no workspace is refused elsewhere.
func (m *meta) unsealed() error {
	if m != nil && m.Sealed {
		return ErrSealed
	}
	return nil
}
