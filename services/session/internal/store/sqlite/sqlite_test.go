package sqlite_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
	"github.com/fairlead/fairlead/services/session/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

// newPath is that of an empty database.
func newPath(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.db")
	migrated.Copy(t, path)
	return path
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, newPath(t)) })
}

func TestRestart(t *testing.T) {
	storetest.RunRestart(t, func(t *testing.T) (store.Store, func() store.Store) {
		path := newPath(t)
		s := open(t, path)
		return s, func() store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, path)
		}
	})
}

func BenchmarkCommit(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store { return open(b, newPath(b)) })
}

func BenchmarkPath(b *testing.B) {
	storetest.BenchPath(b, func(b *testing.B) store.Store { return open(b, newPath(b)) })
}

func BenchmarkRenew(b *testing.B) {
	storetest.BenchRenew(b, func(b *testing.B) store.Store { return open(b, newPath(b)) })
}
