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

	kitsqlite "github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// now is the database's clock, in microseconds since 1970.
const now = `cast(unixepoch('subsec') * 1000000 as integer)`

// Store is a store.Store on a file.
type Store struct{ db *kitsqlite.DB }

var _ store.Store = (*Store)(nil)

// Open opens the file, and creates and migrates it if necessary.
func Open(ctx context.Context, path string) (*Store, error) {
	db, err := kitsqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err == nil {
		err = kitsqlite.Migrate(ctx, db, files)
	}
	s := &Store{db: db}
	if err == nil {
		err = s.orphan(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// orphan ends all leases: only one process uses the file, so their holders are
// dead.
func (s *Store) orphan(ctx context.Context) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `update calls set lease_until = 0 where state = 'started'`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `update operations set lease_until = 0 where state = 'running'`)
		return err
	})
	return failed(err, "end the leases of the last process")
}

// Enter implements store.Store.
func (s *Store) Enter(ctx context.Context, ref store.Ref) (store.Record, error) {
	var r store.Record
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := fence(ctx, tx, ref); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx,
			`select session, state, tool, digest, handed, result, owner, address, claim, lease_until > `+now+`, begun, node, generation
			 from calls where tenant = ? and call_id = ?`,
			ref.Tenant, ref.CallID).Scan(&r.Session, &r.State, &r.Tool, &r.Digest, &r.Handed, &r.Result,
			&r.Owner.ID, &r.Owner.Address, &r.Claim, &r.Live, &r.Begun, &r.Node, &r.Generation)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return r, failed(err, "read call %s", ref.CallID)
}

// fence stores the epoch, unless it is stale. The transaction holds the write
// lock from its beginning, so no other epoch can be stored before it commits.
func fence(ctx context.Context, tx *sql.Tx, ref store.Ref) error {
	done, err := tx.ExecContext(ctx,
		`insert into sessions (tenant, session, epoch, generation) values (?, ?, ?, ?)
		 on conflict (tenant, session) do update set epoch = excluded.epoch, generation = max(sessions.generation, excluded.generation)
		 where excluded.epoch >= sessions.epoch`,
		ref.Tenant, ref.Session, ref.Epoch, ref.Generation)
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
		if err := changed(move(ctx, tx, ref, c)); err != nil || c.Operation == nil {
			return err
		}
		return begin(ctx, tx, ref, c.Operation)
	})
	return failed(err, "move call %s from %q to %q", ref.CallID, c.From, c.To)
}

// changed returns ErrConflict when a statement found no row to change.
func changed(done sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, store.ErrConflict)
	}
	return nil
}

func move(ctx context.Context, tx *sql.Tx, ref store.Ref, c store.Change) (sql.Result, error) {
	owner, first, ttl := store.Owner{}, 0, int64(0)
	if c.To == store.Started {
		owner, first, ttl = c.Owner, 1, c.TTL.Microseconds()
	}
	query := `
		update calls set state = @state, epoch = max(epoch, @epoch), handed = handed or @handed, result = @result, update_time = @at,
			tool = coalesce(nullif(@tool, ''), tool), digest = coalesce(nullif(@digest, ''), digest),
			owner = coalesce(nullif(@owner, ''), owner), address = coalesce(nullif(@address, ''), address),
			claim = claim + @first, lease_until = ` + now + ` + @ttl,
			node = case when @first = 1 then @node else node end, generation = case when @first = 1 then @generation else generation end
		where tenant = @tenant and call_id = @call and state = @from and (@claim = 0 or claim = @claim)`
	if c.From == store.None {
		query = `
			insert into calls (tenant, call_id, session, epoch, state, tool, digest, handed, result, create_time, update_time,
				owner, address, claim, lease_until, node, generation)
			values (@tenant, @call, @session, @epoch, @state, @tool, @digest, @handed, @result, @at, @at,
				@owner, @address, @first, ` + now + ` + @ttl, @node, @generation)
			on conflict (tenant, call_id) do nothing`
	}
	return tx.ExecContext(ctx, query,
		sql.Named("tenant", ref.Tenant), sql.Named("call", ref.CallID), sql.Named("session", ref.Session), sql.Named("epoch", ref.Epoch),
		sql.Named("from", c.From), sql.Named("state", c.To), sql.Named("tool", store.Text(c.Tool)), sql.Named("digest", c.Digest),
		sql.Named("handed", c.To == store.Delegated), sql.Named("result", c.Result), sql.Named("at", c.At.UnixMicro()),
		sql.Named("owner", owner.ID), sql.Named("address", owner.Address), sql.Named("first", first), sql.Named("ttl", ttl), sql.Named("claim", c.Claim),
		sql.Named("node", ref.Node), sql.Named("generation", ref.Generation))
}

// DeleteSession implements store.Store.
func (s *Store) DeleteSession(ctx context.Context, tenant, session string, next int64) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`insert into sessions (tenant, session, epoch) values (?, ?, ?)
			 on conflict (tenant, session) do update set epoch = max(epoch, excluded.epoch)`,
			tenant, session, next)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `delete from calls where tenant = ? and session = ? and epoch < ?`, tenant, session, next)
		return err
	})
	return failed(err, "delete the calls of %s", session)
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error { return failed(s.db.R.PingContext(ctx), "ping") }

// Close implements store.Store.
func (s *Store) Close() error { return s.db.Close() }

// failed is the only place that converts the driver's errors.
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
