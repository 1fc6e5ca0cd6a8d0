// Package sqlite keeps the journal of calls in one SQLite file: the embedded
// backend, for one process.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	kitsqlite "github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/store/tables"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations returns the schema's versions, for goose.
func Migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

// Store is a store.Store on a file.
type Store struct {
	tables.Tables
	db database
}

var _ store.Store = (*Store)(nil)

// Open opens the file, and creates and migrates it if necessary.
func Open(ctx context.Context, path string) (*Store, error) {
	file, err := kitsqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	db := database{file}
	err = kitsqlite.Migrate(ctx, file, Migrations())
	if err == nil {
		err = orphan(ctx, db)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Store{tables.New(db), db}, nil
}

// orphan ends all leases: only one process uses the file, so their holders are
// dead.
func orphan(ctx context.Context, db database) error {
	err := db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Send(ctx,
			sqldb.S("update calls set lease_until = 0 where state = 'started'"),
			sqldb.S("update operations set lease_until = 0 where state = 'running'"))
		return err
	})
	return tables.Failed(db, err, "end the leases of the last process")
}

// database is the tables.DB of a file.
type database struct{ *kitsqlite.DB }

// Reader implements tables.DB.
func (d database) Reader() sqldb.Queryer { return kitsqlite.SQL{Querier: d.R, Clock: time.Now} }

// Write implements tables.DB.
func (d database) Write(ctx context.Context, f func(sqldb.Tx) error) error {
	return d.Tx(ctx, func(tx *sql.Tx) error { return f(kitsqlite.SQL{Querier: tx, Clock: time.Now}) })
}

// Unavailable implements tables.DB.
func (database) Unavailable(err error) bool { return kitsqlite.Unavailable(err) }

// WatchOperations implements store.Operations.
func (s *Store) WatchOperations(ctx context.Context, owner string, ttl time.Duration, limit int) (found []store.Operation, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		found, err = sqldb.Collect(ctx, tx, tables.ScanOperation, `
			update operations set claim = claim + case when owner = $1 then 0 else 1 end, owner = $1, lease_until = clock_timestamp() + $2
			where state = 'running' and (owner = $1 or (tenant, id) in (
				select tenant, id from operations where state = 'running' and owner <> $1 and lease_until <= clock_timestamp()
				order by create_time limit $3))
			returning `+tables.OperationColumns, owner, ttl, limit)
		return err
	})
	return found, tables.Failed(s.db, err, "watch operations")
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	return tables.Failed(s.db, s.db.R.PingContext(ctx), "ping")
}

// Close implements store.Store.
func (s *Store) Close() error { return s.db.Close() }
