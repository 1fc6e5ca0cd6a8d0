package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of checkpoints.
const (
	GetCheckpoint   Method = "GetCheckpoint"
	ListCheckpoints Method = "ListCheckpoints"
)

// GetCheckpoint implements store.Checkpoints.
func (s checkpoints) GetCheckpoint(ctx context.Context, k store.Key, id string) (*sessionv1.Checkpoint, error) {
	return do(ctx, s.injector, GetCheckpoint, func() (*sessionv1.Checkpoint, error) { return s.inner.GetCheckpoint(ctx, k, id) })
}

// ListCheckpoints implements store.Checkpoints.
func (s checkpoints) ListCheckpoints(ctx context.Context, k store.Key, before int64, limit int) ([]*sessionv1.Checkpoint, error) {
	return do(ctx, s.injector, ListCheckpoints, func() ([]*sessionv1.Checkpoint, error) { return s.inner.ListCheckpoints(ctx, k, before, limit) })
}
