package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var log = slog.New(slog.DiscardHandler)

func open(t *testing.T, url, schema string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), url, schema, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func migrations(upTo int) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, s := range []string{"create table a (id int primary key, n int not null)", "insert into a values (1, 0), (2, 0)", "create table b (id int)"}[:upTo] {
		fs[fmt.Sprintf("0000%d_step.sql", i+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + s + ";\n")}
	}
	return fs
}

func count(t *testing.T, pool *pgxpool.Pool, query string) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestATransactionThatSaysNothingHoldsUpNobody(t *testing.T) {
	url := pgtest.New(t)
	if got := setting(t, open(t, url, "session")); got != "5s" {
		t.Errorf("a transaction may say nothing for %s", got)
	}
	silent := open(t, url+"&idle_in_transaction_session_timeout=100ms", "session")
	other := open(t, url, "session")
	if _, err := other.Exec(t.Context(), "create schema session; create table a (id int); insert into a values (1)"); err != nil {
		t.Fatal(err)
	}
	err := pg.Tx(t.Context(), silent, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "update a set id = 2"); err != nil {
			return err
		}
		if _, err := other.Exec(t.Context(), "update a set id = 3"); err != nil { // it waits for the lock
			t.Error(err)
		}
		return tx.QueryRow(t.Context(), "select id from a").Scan(new(int))
	})
	if !pg.Unavailable(err) {
		t.Errorf("the transaction that said nothing: %v", err)
	}
	if n := count(t, other, "select id from a"); n != 3 {
		t.Errorf("the row is %d", n)
	}
}

func setting(t *testing.T, pool *pgxpool.Pool) (value string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "show idle_in_transaction_session_timeout").Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestMigrate(t *testing.T) {
	url := pgtest.New(t)
	pool := open(t, url, "session")
	t.Run("programs that start together take turns", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 5 {
			other := open(t, url, "session")
			wg.Go(func() {
				if err := pg.Migrate(t.Context(), other, "session", migrations(2)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := count(t, pool, "select count(*) from session.a"); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
	})
	t.Run("a second time does nothing, and later steps are added", func(t *testing.T) {
		for _, steps := range []int{2, 3, 3} {
			if err := pg.Migrate(t.Context(), pool, "session", migrations(steps)); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, pool, "select count(*) from b"); n != 0 { // found by the search path
			t.Errorf("%d rows", n)
		}
	})
	t.Run("a newer schema is refused", func(t *testing.T) {
		if err := pg.Migrate(t.Context(), pool, "session", migrations(2)); !errors.Is(err, pg.ErrNewer) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("services on one server keep apart", func(t *testing.T) {
		tools := open(t, url, "tools")
		if err := pg.Migrate(t.Context(), tools, "tools", migrations(1)); err != nil {
			t.Fatal(err)
		}
		if n := count(t, tools, "select count(*) from a"); n != 0 {
			t.Errorf("tools sees %d rows of session", n)
		}
	})
	t.Run("a step that fails leaves nothing and says which it was", func(t *testing.T) {
		broken := open(t, url, "broken")
		fs := migrations(1)
		fs["00002_bad.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\ncreate table c (id int);\nselect nonsense;\n")}
		err := pg.Migrate(t.Context(), broken, "broken", fs)
		if err == nil || !strings.Contains(err.Error(), "version:2") || !strings.Contains(err.Error(), "schema broken") {
			t.Errorf("got %v", err)
		}
		if n := count(t, broken, "select count(*) from pg_tables where schemaname = 'broken' and tablename = 'c'"); n != 0 {
			t.Error("half of a step stayed")
		}
		if err := pg.Migrate(t.Context(), broken, "broken", migrations(2)); err != nil {
			t.Errorf("the lock stayed, or the version: %v", err)
		}
	})
}

func TestTx(t *testing.T) {
	pool := open(t, pgtest.New(t), "session")
	if err := pg.Migrate(t.Context(), pool, "session", migrations(2)); err != nil {
		t.Fatal(err)
	}
	t.Run("conflicts are tried again until all are done", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					if err := pg.TxWith(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, increment(t.Context())); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := count(t, pool, "select n from a where id = 1"); n != 20 {
			t.Errorf("n = %d, want 20", n)
		}
	})
	t.Run("a deadlock is tried again", func(t *testing.T) {
		var both, wg sync.WaitGroup
		both.Add(2)
		for _, order := range [][2]int{{1, 2}, {2, 1}} {
			wg.Go(func() {
				first := true
				err := pg.Tx(t.Context(), pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(t.Context(), "update a set n = n + 1 where id = $1", order[0]); err != nil {
						return err
					}
					if first {
						first = false
						both.Done()
						both.Wait() // each holds its first row now
					}
					_, err := tx.Exec(t.Context(), "update a set n = n + 1 where id = $1", order[1])
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := count(t, pool, "select n from a where id = 2"); n != 2 {
			t.Errorf("n = %d, want 2", n)
		}
	})
	t.Run("an error rolls back and comes back as it is", func(t *testing.T) {
		mine := errors.New("mine")
		err := pg.Tx(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "delete from a"); err != nil {
				return err
			}
			return mine
		})
		if !errors.Is(err, mine) || count(t, pool, "select count(*) from a") != 2 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a conflict without end is reported", func(t *testing.T) {
		tries := 0
		err := pg.Tx(t.Context(), pool, func(pgx.Tx) error { tries++; return &pgconn.PgError{Code: "40001"} })
		if pg.Code(err) != "40001" || tries != 10 {
			t.Errorf("after %d tries: %v", tries, err)
		}
	})
	t.Run("the end of the context ends the trying", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := pg.Tx(ctx, pool, func(pgx.Tx) error { cancel(); return &pgconn.PgError{Code: "40001"} })
		if !errors.Is(err, context.Canceled) && pg.Code(err) != "40001" {
			t.Errorf("got %v", err)
		}
	})
}

func increment(ctx context.Context) func(pgx.Tx) error {
	return func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, "select n from a where id = 1").Scan(&n); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update a set n = $1 where id = 1", n+1)
		return err
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct{ url, schema, want string }{
		"a URL that is none":         {"postgres://bob:hunter2@host:port/db", "session", "cannot be read"},
		"a schema that is none":      {"postgres://x/db", "a; drop table b", "cannot be the name of a schema"},
		"a server that is not there": {"postgres://bob:hunter2@127.0.0.1:1/db", "session", "no connection to 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pg.Open(t.Context(), c.url, c.schema, log)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
			if strings.Contains(name, "server") && !pg.Unavailable(err) {
				t.Error("not Unavailable")
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	pool := open(t, pgtest.New(t), "session")
	err := pool.AcquireFunc(t.Context(), func(c *pgxpool.Conn) error {
		_, err := c.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
		return err
	})
	if !pg.Unavailable(err) {
		t.Errorf("a lost connection: %v", err)
	}
	closed := open(t, pool.Config().ConnString(), "session")
	closed.Close()
	if err := closed.Ping(t.Context()); !pg.Unavailable(err) {
		t.Errorf("a closed pool: %v", err)
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                  {nil, false},
		"a full server":            {&pgconn.PgError{Code: "53300"}, true},
		"a server that shuts down": {fmt.Errorf("x: %w", &pgconn.PgError{Code: "57P01"}), true},
		"a replica":                {&pgconn.PgError{Code: "25006"}, true},
		"a row that exists":        {&pgconn.PgError{Code: "23505"}, false},
		"a cut connection":         {fmt.Errorf("x: %w", io.ErrUnexpectedEOF), true},
		"a cancelled caller":       {context.Canceled, false},
		"a caller out of time":     {context.DeadlineExceeded, false},
		"another error":            {errors.New("x"), false},
	} {
		if got := pg.Unavailable(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
