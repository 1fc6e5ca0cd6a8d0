package faulty

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods that change sessions.
const (
	UpdateSession  Method = "UpdateSession"
	ArchiveSession Method = "ArchiveSession"
)

// UpdateSession implements store.SessionChanges.
func (s *Store) UpdateSession(ctx context.Context, u store.UpdateSession) (store.Answer, error) {
	return do(ctx, s.injector, UpdateSession, func() (store.Answer, error) { return s.inner.UpdateSession(ctx, u) })
}

// ArchiveSession implements store.SessionChanges.
func (s *Store) ArchiveSession(ctx context.Context, a store.ArchiveSession) (store.Answer, error) {
	return do(ctx, s.injector, ArchiveSession, func() (store.Answer, error) { return s.inner.ArchiveSession(ctx, a) })
}
