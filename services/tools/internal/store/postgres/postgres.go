// Package postgres keeps the journal of calls in a Postgres schema of its own,
// shared by any number of processes.
package postgres

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/store/tables"
)

// schema is this service's own; no other reads it.
const schema = "tools"

//go:embed migrations/*.sql
var migrations embed.FS

// Store is a store.Store on Postgres.
type Store struct {
	tables.Tables
	db  database
	log *slog.Logger
}

var _ store.Store = (*Store)(nil)

// Open connects to the database and migrates the schema.
func Open(ctx context.Context, url string, log *slog.Logger) (*Store, error) {
	pool, err := pg.Open(ctx, url, schema, log)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err == nil {
		err = pg.Migrate(ctx, pool, schema, files)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	db := database{pool}
	return &Store{tables.New(db), db, log}, nil
}

// database is the tables.DB of a pool.
type database struct{ pool *pgxpool.Pool }

// Reader implements tables.DB.
func (d database) Reader() sqldb.Queryer { return pg.SQL{Querier: d.pool} }

// Write implements tables.DB.
func (d database) Write(ctx context.Context, f func(sqldb.Tx) error) error {
	return pg.Tx(ctx, d.pool, func(tx pgx.Tx) error { return f(pg.SQL{Querier: tx}) })
}

// Unavailable implements tables.DB.
func (database) Unavailable(err error) bool { return pg.Unavailable(err) }

// WatchOperations implements store.Operations. It skips rows that another replica
// is about to take.
func (s *Store) WatchOperations(ctx context.Context, owner string, ttl time.Duration, limit int) ([]store.Operation, error) {
	found, err := sqldb.Collect(ctx, s.db.Reader(), tables.ScanOperation, `
		with free as (
			select tenant, id from operations
			where state = 'running' and owner <> $1 and (lease_until is null or lease_until <= clock_timestamp())
			order by create_time limit $3 for update skip locked
		), mine as (
			select tenant, id from operations where state = 'running' and owner = $1
		)
		update operations set owner = $1, lease_until = clock_timestamp() + $2::interval,
			claim = claim + case when owner = $1 then 0 else 1 end
		from (select * from free union select * from mine) t
		where operations.tenant = t.tenant and operations.id = t.id and state = 'running'
			and (owner = $1 or lease_until is null or lease_until <= clock_timestamp())
		returning `+tables.OperationColumns, owner, ttl, limit)
	return found, tables.Failed(s.db, err, "watch operations")
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	return tables.Failed(s.db, pg.Writable(ctx, s.db.pool), "write")
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.db.pool.Close()
	return nil
}
