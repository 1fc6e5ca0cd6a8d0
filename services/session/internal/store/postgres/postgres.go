// Package postgres keeps sessions in Postgres, for any number of replicas.
//
// A transaction that changes a session locks its row first. A transaction that
// locks several sessions locks them in the order of their keys, so that no
// deadlock arises. The rows are read under the lock, the changes are decided in
// Go (package plan), and each table is written with one statement. Wakes are
// notifications on one channel, one for each transaction.
package postgres

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// Schema is the Postgres schema of the session service.
const Schema = "session"

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

// Store is a store.Store in Postgres.
type Store struct {
	tables.Tables
	db       database
	listener *listener
	log      *slog.Logger
}

var _ store.Store = (*Store)(nil)

// Open connects to the database at url and brings the schema up to date.
func Open(ctx context.Context, url string, log *slog.Logger) (*Store, error) {
	pool, err := pg.Open(ctx, url, Schema, log)
	if err != nil {
		return nil, fail("open the session database", err)
	}
	if err := pg.Migrate(ctx, pool, Schema, Migrations()); err != nil {
		pool.Close()
		return nil, fail("migrate the session database", err)
	}
	db := database{pool, plan.NewBroadcast()}
	return &Store{tables.New(db), db, newListener(pool.Config().ConnConfig, db.wakes, log), log}, nil
}

// Close closes the connections and the channels of Listen.
func (s *Store) Close() error {
	s.listener.close()
	s.db.wakes.Close()
	s.db.pool.Close()
	return nil
}

// Ping checks that the database takes writes.
func (s *Store) Ping(ctx context.Context) error {
	return fail("write", pg.Writable(ctx, s.db.pool))
}

// Listen sends the wakes of all replicas.
func (s *Store) Listen(ctx context.Context) (<-chan store.Wake, error) {
	c, err := s.db.wakes.Listen(ctx)
	if err != nil {
		return nil, err
	}
	s.listener.start(ctx)
	return c, nil
}

// limit returns nil for 0, which means no limit.
func limit(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

// queryer is a transaction or the pool.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, q queryer, scan pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]T(nil), rows, scan)
}
