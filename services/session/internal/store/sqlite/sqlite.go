// Package sqlite keeps sessions in one SQLite file, for one replica. Writes go
// through one connection, one after another, so that each transaction has the
// database for itself; reads run beside them. Wakes stay in the process, and
// the process's clock decides when leases end, because no other process uses
// the file.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations returns the schema's versions, for goose.
func Migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// Store is a store.Store in a SQLite file.
type Store struct {
	db    *sqlite.DB
	wakes *backend.Broadcast
	log   *slog.Logger
	now   func() time.Time

	prepared prepared
	// close closes once; every call of Close returns its result.
	close func() error
}

var _ store.Store = (*Store)(nil)

// Open opens the file, creates it if necessary, and brings its schema up to
// date. It fails when another server has the file open.
func Open(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open the session database: %w", err)
	}
	if err := sqlite.Migrate(ctx, db, Migrations()); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate the session database: %w", err), db.Close())
	}
	p, err := prepare(ctx, db.W)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the session database: %w", err), db.Close())
	}
	log.DebugContext(ctx, "session database is open", "path", path)
	s := &Store{db: db, wakes: backend.NewBroadcast(), log: log, now: time.Now, prepared: p}
	s.close = sync.OnceValue(func() error { return errors.Join(p.close(), db.Close()) })
	return s, nil
}

// Close closes the file, and the channels of Listen.
func (s *Store) Close() error {
	s.wakes.Close()
	if err := s.close(); err != nil {
		return fmt.Errorf("close the session database: %w", err)
	}
	return nil
}

// Ping checks that the file can be read.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.fail("ping", s.db.R.QueryRowContext(ctx, "select 1").Scan(&one))
}

// Listen sends the wakes of this process.
func (s *Store) Listen(ctx context.Context) (<-chan store.Wake, error) {
	return s.wakes.Listen(ctx)
}

// clock returns the time in the database's precision.
func (s *Store) clock() time.Time { return backend.Micros(s.now()) }

// write runs f in a transaction of its own, and sends the wakes that f returns
// after the commit.
func (s *Store) write(ctx context.Context, what string, f func(tx *sql.Tx) ([]store.Wake, error)) error {
	return s.fail(what, s.transact(ctx, f))
}

func (s *Store) transact(ctx context.Context, f func(tx *sql.Tx) ([]store.Wake, error)) (err error) {
	tx, err := s.db.W.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	wakes, err := f(tx)
	if err != nil {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			s.log.WarnContext(ctx, "cannot roll back", "error", rollback)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.wakes.Send(wakes...)
	return nil
}

// read runs f in a transaction that sees a snapshot of the database.
func (s *Store) read(ctx context.Context, what string, f func(tx *sql.Tx) error) error {
	tx, err := s.db.R.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.fail(what, err)
	}
	err = f(tx)
	if end := tx.Rollback(); end != nil && !errors.Is(end, sql.ErrTxDone) {
		s.log.WarnContext(ctx, "cannot end a read", "error", end)
	}
	return s.fail(what, err)
}

// fail adds the operation to an error.
func (s *Store) fail(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	case sqlite.Unavailable(err), errors.Is(err, sql.ErrConnDone), err.Error() == "sql: database is closed":
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// limit converts 0, which means no limit, for SQLite.
func limit(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// queryer is a transaction or a pool.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, q queryer, scan func(*sql.Rows) (T, error), query string, args ...any) (_ []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

func scanBody(rows *sql.Rows) (b []byte, err error) { return b, rows.Scan(&b) }
