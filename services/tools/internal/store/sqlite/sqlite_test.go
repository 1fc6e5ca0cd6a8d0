package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/store/storetest"
)

var migrated = sqlitetest.NewTemplate(Migrations())

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		file := filepath.Join(t.TempDir(), "tools.db")
		migrated.Copy(t, file)
		s, err := Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}

func TestOpenAgainKeepsTheJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tools.db")
	ref := store.Ref{Tenant: "acme", Session: "sessions/s1", Epoch: 1, CallID: "c1"}
	for i, want := range []store.State{store.None, store.Started} {
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Enter(t.Context(), ref)
		if err != nil || got.State != want {
			t.Fatalf("opened %d times: got %q, %v, want %q", i+1, got.State, err, want)
		}
		if i == 0 {
			if err := s.Move(t.Context(), ref, store.Change{To: store.Started, Tool: "Bash", Digest: "d"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
