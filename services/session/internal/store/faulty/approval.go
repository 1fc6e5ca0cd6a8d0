package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods that read what waits for people.
const (
	ListPending Method = "ListPending"
	GetPending  Method = "GetPending"
)

// ListPending implements store.Approvals.
func (s *approvals) ListPending(ctx context.Context, p store.PendingPage) ([]*sessionv1.PendingApproval, error) {
	return do(ctx, s.injector, ListPending, func() ([]*sessionv1.PendingApproval, error) { return s.inner.ListPending(ctx, p) })
}

// GetPending implements store.Approvals.
func (s *approvals) GetPending(ctx context.Context, k store.Key, call string) (*sessionv1.PendingApproval, error) {
	return do(ctx, s.injector, GetPending, func() (*sessionv1.PendingApproval, error) { return s.inner.GetPending(ctx, k, call) })
}
