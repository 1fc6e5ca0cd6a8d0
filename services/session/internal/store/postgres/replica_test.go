package postgres_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
)

func newSession(k store.Key) store.NewSession {
	return store.NewSession{Key: k, Event: &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{}}}}
}

func await(t *testing.T, c <-chan store.Wake, want store.Wake) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case w, ok := <-c:
			if !ok {
				t.Fatal("the channel was closed")
			}
			if w == want {
				return
			}
		case <-timeout:
			t.Fatalf("no wake %+v", want)
		}
	}
}

func TestReplicasWakeEachOther(t *testing.T) {
	url := pgtest.New(t)
	one, two := open(t, url), open(t, url)
	c, err := two.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := store.Key{Tenant: `a "tenant", [odd]`, Session: "s"}
	if _, err := one.CreateSession(t.Context(), newSession(k)); err != nil {
		t.Fatal(err)
	}
	await(t, c, store.Wake{Key: k, Kind: store.WakeEvents})
}

func TestAListenerThatLosesItsConnectionIsToldAndHearsAgain(t *testing.T) {
	url := pgtest.New(t)
	s := open(t, url)
	c, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
	tag, err := conn.Exec(t.Context(), `
		select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and query = 'listen fairlead_session'`)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("ended %d connections, %v", tag.RowsAffected(), err)
	}
	await(t, c, store.Wake{Kind: store.WakeLost})
	k := store.Key{Tenant: "acme", Session: "s"}
	if _, err := s.CreateSession(t.Context(), newSession(k)); err != nil {
		t.Fatal(err)
	}
	await(t, c, store.Wake{Key: k, Kind: store.WakeEvents})
}

// Replicas commit to, renew and claim the same sessions in opposite orders; none
// may wait for another for ever, and none may fail.
func TestReplicasDoNotLockEachOtherOut(t *testing.T) {
	url := pgtest.New(t)
	one, two := open(t, url), open(t, url)
	var leases []store.Lease
	for i := range 20 {
		k := store.Key{Tenant: string(rune('a' + i%3)), Session: string(rune('a' + i))}
		if _, err := one.CreateSession(t.Context(), newSession(k)); err != nil {
			t.Fatal(err)
		}
		_, err := one.Submit(t.Context(), store.Submit{
			Key: k, Command: store.Command{Kind: store.CommandTurn},
			Turn: &store.TurnRow{ID: "t", Turn: &sessionv1.Turn{Name: "sessions/" + k.Session + "/turns/t"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	leases, err := one.Claim(t.Context(), store.Claim{Replica: "one", TTL: time.Hour})
	if err != nil || len(leases) != 20 {
		t.Fatal(leases, err)
	}
	var wg sync.WaitGroup
	for i, s := range []*postgres.Store{one, two, one, two} {
		wg.Go(func() {
			for round := range 30 {
				mine := append([]store.Lease(nil), leases[round%20:]...)
				mine = append(mine, leases[:round%20]...)
				var err error
				switch i {
				case 0, 1:
					writes := make([]store.Write, 0, len(mine))
					for _, l := range mine {
						writes = append(writes, store.Write{Lease: l, AddUsage: &sessionv1.Usage{InputTokens: 1}})
					}
					var errs []error
					errs, err = s.Commit(t.Context(), writes)
					err = errors.Join(append(errs, err)...)
				case 2:
					_, err = s.Renew(t.Context(), mine, time.Hour)
				case 3:
					_, err = s.Claim(t.Context(), store.Claim{Replica: "two", TTL: time.Hour})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, l := range leases {
		got, err := one.GetSession(t.Context(), l.Key)
		if err != nil || got.Usage.InputTokens != 60 {
			t.Errorf("%v: %v, %v", l.Key, got, err)
		}
	}
}

func TestADatabaseThatIsNotThereIsUnavailable(t *testing.T) {
	_, err := postgres.Open(t.Context(), "postgres:///x?host="+filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler))
	if !errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
}

func TestMigrationsGoUpDownUp(t *testing.T) {
	db, err := sql.Open("pgx", pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a temporary database
	p, err := goose.NewProvider(goose.DialectPostgres, db, postgres.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	tables := func() (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(),
			"select count(*) from pg_tables where schemaname = 'public' and tablename not like 'goose%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := tables()
	if _, err := p.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n := tables(); made == 0 || n != 0 {
		t.Errorf("%d tables up, %d tables down", made, n)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Replicas append to the audit log of one tenant, and make one chain.
func TestReplicasContinueOneChainOfAudit(t *testing.T) {
	url := pgtest.New(t)
	one, two := open(t, url), open(t, url)
	var wg sync.WaitGroup
	for i := range 8 {
		s := []*postgres.Store{one, two}[i%2]
		wg.Go(func() {
			for range 20 {
				if err := s.AppendAudit(t.Context(), "acme", []audit.Entry{{Time: time.Now(), User: "ann", Code: "OK"}, {Time: time.Now(), User: "bob", Code: "OK"}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := two.ListAudit(t.Context(), store.AuditPage{Tenant: "acme"})
	if err != nil || len(all) != 320 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	var chain audit.Chain
	for _, e := range all {
		err := chain.Add(audit.Entry{Tenant: e.Tenant, Seq: e.Seq, Time: e.Time.AsTime(), User: strings.TrimPrefix(e.User, "users/"), Code: e.Code, Hash: e.Hash})
		if err != nil {
			t.Fatal(err)
		}
	}
}
