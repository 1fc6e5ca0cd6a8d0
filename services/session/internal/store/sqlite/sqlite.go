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
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
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
	tables.Tables
	db *database

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
	if err := orphan(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("end the leases of the last process: %w", err), db.Close())
	}
	log.DebugContext(ctx, "session database is open", "path", path)
	d := &database{db, plan.NewBroadcast(), log, time.Now}
	s := &Store{Tables: tables.New(d), db: d}
	s.close = sync.OnceValue(db.Close)
	return s, nil
}

// orphan ends all leases: only one process uses the file, so their holders are dead. Epochs stay, so that what a
// holder left running elsewhere is fenced.
func orphan(ctx context.Context, db *sqlite.DB) error {
	return db.Tx(ctx, func(tx *sql.Tx) error {
		now := micros(time.Now())
		for _, query := range []string{
			"update sessions set lease_until = ? where lease_until > ?", "update jobs set lease_until = ? where lease_until > ?",
		} {
			if _, err := tx.ExecContext(ctx, query, now, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes the file, and the channels of Listen.
func (s *Store) Close() error {
	s.db.wakes.Close()
	if err := s.close(); err != nil {
		return fmt.Errorf("close the session database: %w", err)
	}
	return nil
}

// Ping checks that the file can be read.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.db.Fail("ping", s.db.R.QueryRowContext(ctx, "select 1").Scan(&one))
}

// Listen sends the wakes of this process.
func (s *Store) Listen(ctx context.Context) (<-chan store.Wake, error) {
	return s.db.wakes.Listen(ctx)
}

func micros(t time.Time) int64 { return t.UnixMicro() }
