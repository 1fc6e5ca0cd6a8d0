// Package sqlite keeps the journal of calls in one SQLite file: the embedded
// backend, for one process.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"

	kitsqlite "github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is a store.Store on a file.
type Store struct{ db *kitsqlite.DB }

var _ store.Store = (*Store)(nil)

// Open opens the file, which it makes and migrates if need be.
func Open(ctx context.Context, path string) (*Store, error) {
	db, err := kitsqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err == nil {
		err = kitsqlite.Migrate(ctx, db, files)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db: db}, nil
}

// Enter implements store.Store.
func (s *Store) Enter(ctx context.Context, ref store.Ref) (store.Record, error) {
	var r store.Record
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := fence(ctx, tx, ref); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx,
			`select session, state, tool, digest, handed, result from calls where tenant = ? and call_id = ?`,
			ref.Tenant, ref.CallID).Scan(&r.Session, &r.State, &r.Tool, &r.Digest, &r.Handed, &r.Result)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return r, failed(err, "read call %s", ref.CallID)
}

// fence notes the epoch, unless it is stale. The transaction holds the write
// lock from its beginning, so nobody can note another one before it commits.
func fence(ctx context.Context, tx *sql.Tx, ref store.Ref) error {
	done, err := tx.ExecContext(ctx,
		`insert into sessions (tenant, session, epoch) values (?, ?, ?)
		 on conflict (tenant, session) do update set epoch = excluded.epoch where excluded.epoch >= sessions.epoch`,
		ref.Tenant, ref.Session, ref.Epoch)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, store.ErrStaleEpoch)
	}
	return nil
}

// Move implements store.Store.
func (s *Store) Move(ctx context.Context, ref store.Ref, c store.Change) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if c.Fenced {
			if err := fence(ctx, tx, ref); err != nil {
				return err
			}
		}
		done, err := move(ctx, tx, ref, c)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, store.ErrConflict)
		}
		return nil
	})
	return failed(err, "move call %s from %q to %q", ref.CallID, c.From, c.To)
}

func move(ctx context.Context, tx *sql.Tx, ref store.Ref, c store.Change) (sql.Result, error) {
	at, handed := c.At.UnixMicro(), c.To == store.Delegated
	if c.From == store.None {
		return tx.ExecContext(ctx,
			`insert into calls (tenant, call_id, session, epoch, state, tool, digest, handed, result, create_time, update_time)
			 values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (tenant, call_id) do nothing`,
			ref.Tenant, ref.CallID, ref.Session, ref.Epoch, c.To, c.Tool, c.Digest, handed, c.Result, at, at)
	}
	return tx.ExecContext(ctx,
		`update calls set state = ?, epoch = max(epoch, ?), handed = handed or ?, result = ?, update_time = ?,
		   tool = case when ? = '' then tool else ? end, digest = case when ? = '' then digest else ? end
		 where tenant = ? and call_id = ? and state = ?`,
		c.To, ref.Epoch, handed, c.Result, at, c.Tool, c.Tool, c.Digest, c.Digest, ref.Tenant, ref.CallID, c.From)
}

// DeleteSession implements store.Store.
func (s *Store) DeleteSession(ctx context.Context, tenant, session string) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `delete from calls where tenant = ? and session = ?`, tenant, session); err != nil {
			return err
		}
		return fence(ctx, tx, store.Ref{Tenant: tenant, Session: session, Epoch: math.MaxInt64})
	})
	return failed(err, "delete the calls of %s", session)
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error { return failed(s.db.R.PingContext(ctx), "ping") }

// Close implements store.Store.
func (s *Store) Close() error { return s.db.Close() }

// failed is the one place where the driver's errors become ours.
func failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	if kitsqlite.Unavailable(err) {
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
