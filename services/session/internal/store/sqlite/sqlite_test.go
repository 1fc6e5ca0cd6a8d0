package sqlite_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
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

// TestANewProcessTakesOverAtOnce: the holder of a lease is dead when another process has the file.
func TestANewProcessTakesOverAtOnce(t *testing.T) {
	path := newPath(t)
	k := store.Key{Tenant: "default", Session: "s"}
	s := open(t, path)
	if _, err := s.CreateSession(t.Context(), store.NewSession{
		Key: k, Agent: "agents/coder", AgentRevision: "r",
		Event: &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/coder"}}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandTurn, TurnID: "t"},
		Turn: &store.TurnRow{ID: "t", Turn: &sessionv1.Turn{Name: "sessions/s/turns/t", State: sessionv1.TurnState_TURN_STATE_QUEUED}},
	}); err != nil {
		t.Fatal(err)
	}
	claim := store.Claim{Replica: "first", TTL: time.Hour, Limit: 1}
	first, err := s.Claim(t.Context(), claim)
	if err != nil || len(first) != 1 {
		t.Fatalf("claimed %v, %v", first, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	claim.Replica = "second"
	second, err := s.Claim(t.Context(), claim)
	if err != nil || len(second) != 1 || second[0].Epoch <= first[0].Epoch {
		t.Fatalf("claimed %v after %v, %v", second, first, err)
	}
	if !second[0].FenceDue {
		t.Error("what the first process left running is not fenced")
	}
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
