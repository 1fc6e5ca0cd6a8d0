package session

import (
	"context"
	"log/slog"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// WrapStores puts wrap around every store that New opens until the test ends.
// Tests that use it are not parallel.
func WrapStores(t *testing.T, wrap func(store.Store) store.Store) {
	t.Helper()
	old := openStore
	openStore = func(ctx context.Context, c Config, log *slog.Logger) (store.Store, error) {
		s, err := open(ctx, c, log)
		if err != nil {
			return nil, err
		}
		return wrap(s), nil
	}
	t.Cleanup(func() { openStore = old })
}

// UseStore makes New work with the stores that next returns, until the test
// ends. Tests that use it are not parallel.
func UseStore(t *testing.T, next func() store.Store) {
	t.Helper()
	old := openStore
	openStore = func(context.Context, Config, *slog.Logger) (store.Store, error) { return next(), nil }
	t.Cleanup(func() { openStore = old })
}
