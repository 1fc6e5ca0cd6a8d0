package faulty

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of work queues.
const (
	PollWork   Method = "PollWork"
	GetWork    Method = "GetWork"
	ChangeWork Method = "ChangeWork"
	ListWork   Method = "ListWork"
	CountWork  Method = "CountWork"
)

// PollWork implements store.WorkQueues.
func (s workQueues) PollWork(ctx context.Context, p store.WorkPoll) (*store.Work, error) {
	return do(ctx, s.injector, PollWork, func() (*store.Work, error) { return s.inner.PollWork(ctx, p) })
}

// GetWork implements store.WorkQueues.
func (s workQueues) GetWork(ctx context.Context, q store.WorkQueue, session string, number int64) (*store.Work, error) {
	return do(ctx, s.injector, GetWork, func() (*store.Work, error) { return s.inner.GetWork(ctx, q, session, number) })
}

// ChangeWork implements store.WorkQueues.
func (s workQueues) ChangeWork(ctx context.Context, q store.WorkQueue, session string, number int64, f func(w *store.Work, now time.Time) error) (*store.Work, error) {
	return do(ctx, s.injector, ChangeWork, func() (*store.Work, error) { return s.inner.ChangeWork(ctx, q, session, number, f) })
}

// ListWork implements store.WorkQueues.
func (s workQueues) ListWork(ctx context.Context, q store.WorkQueue, after string, limit int) ([]*store.Work, error) {
	return do(ctx, s.injector, ListWork, func() ([]*store.Work, error) { return s.inner.ListWork(ctx, q, after, limit) })
}

// CountWork implements store.WorkQueues.
func (s workQueues) CountWork(ctx context.Context, q store.WorkQueue) (store.WorkStats, error) {
	return do(ctx, s.injector, CountWork, func() (store.WorkStats, error) { return s.inner.CountWork(ctx, q) })
}
