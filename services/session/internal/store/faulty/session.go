package faulty

import (
	"context"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// CreateSession implements store.Store.
func (s *Store) CreateSession(ctx context.Context, n store.NewSession) (store.Answer, error) {
	return do(ctx, s.injector, CreateSession, func() (store.Answer, error) { return s.inner.CreateSession(ctx, n) })
}

// GetSession implements store.Store.
func (s *Store) GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error) {
	return do(ctx, s.injector, GetSession, func() (*sessionv1.Session, error) { return s.inner.GetSession(ctx, k) })
}

// SessionOwner implements store.Store.
func (s *Store) SessionOwner(ctx context.Context, k store.Key) (string, error) {
	return do(ctx, s.injector, SessionOwner, func() (string, error) { return s.inner.SessionOwner(ctx, k) })
}

// ListSessions implements store.Store.
func (s *Store) ListSessions(ctx context.Context, p store.SessionPage) ([]*sessionv1.Session, error) {
	return do(ctx, s.injector, ListSessions, func() ([]*sessionv1.Session, error) { return s.inner.ListSessions(ctx, p) })
}

// DeleteSession implements store.Store.
func (s *Store) DeleteSession(ctx context.Context, k store.Key, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, DeleteSession, func() (store.Answer, error) { return s.inner.DeleteSession(ctx, k, r) })
}

// Submit implements store.Store.
func (s *Store) Submit(ctx context.Context, n store.Submit) (store.Answer, error) {
	return do(ctx, s.injector, Submit, func() (store.Answer, error) { return s.inner.Submit(ctx, n) })
}

// LeaseTokens implements store.Store.
func (s *Store) LeaseTokens(ctx context.Context, l store.TokenLease) (int64, error) {
	return do(ctx, s.injector, LeaseTokens, func() (int64, error) { return s.inner.LeaseTokens(ctx, l) })
}

// GetTurn implements store.Store.
func (s *Store) GetTurn(ctx context.Context, k store.Key, id string) (*sessionv1.Turn, error) {
	return do(ctx, s.injector, GetTurn, func() (*sessionv1.Turn, error) { return s.inner.GetTurn(ctx, k, id) })
}

// TurnOfRequest implements store.Store.
func (s *Store) TurnOfRequest(ctx context.Context, k store.Key, requestID string, methods ...string) (*sessionv1.Turn, error) {
	return do(ctx, s.injector, TurnOfRequest, func() (*sessionv1.Turn, error) { return s.inner.TurnOfRequest(ctx, k, requestID, methods...) })
}

// ListTurns implements store.Store.
func (s *Store) ListTurns(ctx context.Context, k store.Key, after string, limit int) ([]*sessionv1.Turn, error) {
	return do(ctx, s.injector, ListTurns, func() ([]*sessionv1.Turn, error) { return s.inner.ListTurns(ctx, k, after, limit) })
}

// ListEvents implements store.Store.
func (s *Store) ListEvents(ctx context.Context, k store.Key, afterSeq int64, limit, maxBytes int) ([]*sessionv1.Event, error) {
	return do(ctx, s.injector, ListEvents, func() ([]*sessionv1.Event, error) {
		return s.inner.ListEvents(ctx, k, afterSeq, limit, maxBytes)
	})
}

// ListMessages implements store.Store.
func (s *Store) ListMessages(ctx context.Context, k store.Key, head, after string, limit int) ([]*sessionv1.Message, error) {
	return do(ctx, s.injector, ListMessages, func() ([]*sessionv1.Message, error) {
		return s.inner.ListMessages(ctx, k, head, after, limit)
	})
}

// DeleteIdle implements store.Store.
func (s *Store) DeleteIdle(ctx context.Context, idle time.Duration, limit int) ([]store.Key, error) {
	return do(ctx, s.injector, DeleteIdle, func() ([]store.Key, error) { return s.inner.DeleteIdle(ctx, idle, limit) })
}

// FoldEvents implements store.Store.
func (s *Store) FoldEvents(ctx context.Context, k store.Key, first, last int64, events []*sessionv1.Event) error {
	return just(ctx, s.injector, FoldEvents, func() error { return s.inner.FoldEvents(ctx, k, first, last, events) })
}

// IndexMessages implements store.Store.
func (s *Store) IndexMessages(ctx context.Context, k store.Key, limit int) (int, error) {
	return do(ctx, s.injector, IndexMessages, func() (int, error) { return s.inner.IndexMessages(ctx, k, limit) })
}

// SearchMessages implements store.Store.
func (s *Store) SearchMessages(ctx context.Context, m store.MessageSearch) ([]*sessionv1.Message, error) {
	return do(ctx, s.injector, SearchMessages, func() ([]*sessionv1.Message, error) { return s.inner.SearchMessages(ctx, m) })
}
