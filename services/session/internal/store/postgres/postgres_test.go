package postgres_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
	"github.com/fairlead/fairlead/services/session/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, slog.New(slog.NewTextHandler(t.Output(), nil)))
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

// empty empties all tables: the suite's cases run one after another, and a
// database for each of them would take most of their time. The tables of users and
// tenants get back what their migration put there.
func empty(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
	if _, err := conn.Exec(t.Context(), `do $$ declare name text; begin
		set local session_replication_role = replica; -- the tables may be emptied in any order
		for name in select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'session' and tablename not like 'goose%' loop
			execute 'delete from ' || name; -- with so few rows it is ten times as quick as truncate
		end loop;
		insert into session.tenants (tenant, title, create_time) values ('default', '', clock_timestamp());
		insert into session.users (tenant, user_id, title, role, create_time, update_time)
			values ('default', 'default', '', 4, clock_timestamp(), clock_timestamp());
	end $$`); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		s := open(t, url)
		empty(t, url)
		return s
	})
}

func TestRestart(t *testing.T) {
	storetest.RunRestart(t, func(t *testing.T) (store.Store, func() store.Store) {
		url := pgtest.New(t)
		s := open(t, url)
		return s, func() store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, url)
		}
	})
}

func BenchmarkCommit(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store { return open(b, pgtest.New(b)) })
}

// The database's clock cannot be put forward, so the deliveries' times are put back.
func TestDeliveriesAreKeptForSevenDays(t *testing.T) {
	storetest.RunKept(t, func(t *testing.T) (store.Store, func(time.Duration)) {
		url := pgtest.New(t)
		return open(t, url), func(d time.Duration) {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
			if _, err := conn.Exec(t.Context(), "update session.deliveries set create_time = create_time - $1::interval", d); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkPath(b *testing.B) {
	storetest.BenchPath(b, func(b *testing.B) store.Store { return open(b, pgtest.New(b)) })
}

func BenchmarkRenew(b *testing.B) {
	storetest.BenchRenew(b, func(b *testing.B) store.Store { return open(b, pgtest.New(b)) })
}
