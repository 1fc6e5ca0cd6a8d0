package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ListTree implements store.Store.
func (s imports) ListTree(ctx context.Context, k store.Key, after string, limit, maxBytes int) ([]*sessionv1.Message, error) {
	return do(ctx, s.injector, ListTree, func() ([]*sessionv1.Message, error) {
		return s.inner.ListTree(ctx, k, after, limit, maxBytes)
	})
}

// ImportSession implements store.Store.
func (s imports) ImportSession(ctx context.Context, i store.Import) (store.Answer, error) {
	return do(ctx, s.injector, ImportSession, func() (store.Answer, error) { return s.inner.ImportSession(ctx, i) })
}
