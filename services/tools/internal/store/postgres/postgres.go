// Package postgres keeps the journal of calls in a Postgres schema of its own,
// shared by any number of processes.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// schema is this service's own; no other reads it.
const schema = "tools"

//go:embed migrations/*.sql
var migrations embed.FS

// Store is a store.Store on Postgres.
type Store struct{ pool *pgxpool.Pool }

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
	return &Store{pool: pool}, nil
}

// Enter implements store.Store.
func (s *Store) Enter(ctx context.Context, ref store.Ref) (store.Record, error) {
	var r store.Record
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		r = store.Record{}
		if err := fence(ctx, tx, ref); err != nil {
			return err
		}
		err := tx.QueryRow(ctx,
			`select session, state, tool, digest, handed, result, owner, address, claim, coalesce(lease_until > clock_timestamp(), false), begun, node, generation
			 from calls where tenant = $1 and call_id = $2`,
			ref.Tenant, ref.CallID).Scan(&r.Session, &r.State, &r.Tool, &r.Digest, &r.Handed, &r.Result,
			&r.Owner.ID, &r.Owner.Address, &r.Claim, &r.Live, &r.Begun, &r.Node, &r.Generation)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return r, failed(err, "read call %s", ref.CallID)
}

// fence stores the epoch, unless it is stale. The row stays locked until the
// transaction ends, so no other epoch can be stored before it commits.
func fence(ctx context.Context, tx pgx.Tx, ref store.Ref) error {
	done, err := tx.Exec(ctx,
		`insert into sessions (tenant, session, epoch, generation) values ($1, $2, $3, $4)
		 on conflict (tenant, session) do update set epoch = excluded.epoch, generation = greatest(sessions.generation, excluded.generation)
		 where excluded.epoch >= sessions.epoch`,
		ref.Tenant, ref.Session, ref.Epoch, ref.Generation)
	if err != nil {
		return err
	}
	if done.RowsAffected() == 0 {
		return store.ErrStaleEpoch
	}
	return nil
}

// Move implements store.Store.
func (s *Store) Move(ctx context.Context, ref store.Ref, c store.Change) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if c.Fenced {
			if err := fence(ctx, tx, ref); err != nil {
				return err
			}
		}
		rows, err := move(ctx, tx, ref, c)
		if err == nil && rows == 0 {
			err = store.ErrConflict
		}
		if err != nil || c.Operation == nil {
			return err
		}
		return begin(ctx, tx, ref, c.Operation)
	})
	return failed(err, "move call %s from %q to %q", ref.CallID, c.From, c.To)
}

func move(ctx context.Context, tx pgx.Tx, ref store.Ref, c store.Change) (int64, error) {
	args := pgx.NamedArgs{
		"tenant": ref.Tenant, "call": ref.CallID, "session": ref.Session, "epoch": ref.Epoch, "from": c.From, "state": c.To,
		"tool": store.Text(c.Tool), "digest": c.Digest, "handed": c.To == store.Delegated, "result": c.Result, "at": c.At.UTC(),
		"owner": "", "address": "", "first": 0, "ttl": time.Duration(0), "claim": c.Claim,
		"node": ref.Node, "generation": ref.Generation,
	}
	if c.To == store.Started {
		args["owner"], args["address"], args["first"], args["ttl"] = c.Owner.ID, c.Owner.Address, 1, c.TTL
	}
	query := `
		update calls set state = @state, epoch = greatest(epoch, @epoch), handed = handed or @handed, result = @result, update_time = @at,
			tool = coalesce(nullif(@tool, ''), tool), digest = coalesce(nullif(@digest, ''), digest),
			owner = coalesce(nullif(@owner, ''), owner), address = coalesce(nullif(@address, ''), address),
			claim = claim + @first, lease_until = clock_timestamp() + @ttl::interval,
			node = case when @first = 1 then @node else node end, generation = case when @first = 1 then @generation else generation end
		where tenant = @tenant and call_id = @call and state = @from and (@claim = 0 or claim = @claim)`
	if c.From == store.None {
		query = `
			insert into calls (tenant, call_id, session, epoch, state, tool, digest, handed, result, create_time, update_time,
				owner, address, claim, lease_until, node, generation)
			values (@tenant, @call, @session, @epoch, @state, @tool, @digest, @handed, @result, @at, @at,
				@owner, @address, @first, clock_timestamp() + @ttl::interval, @node, @generation)
			on conflict (tenant, call_id) do nothing`
	}
	done, err := tx.Exec(ctx, query, args)
	return done.RowsAffected(), err
}

// DeleteSession implements store.Store.
func (s *Store) DeleteSession(ctx context.Context, tenant, session string, next int64) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		// The fence first: it waits for transactions that are about to start a
		// call.
		_, err := tx.Exec(ctx,
			`insert into sessions (tenant, session, epoch) values ($1, $2, $3)
			 on conflict (tenant, session) do update set epoch = greatest(sessions.epoch, excluded.epoch)`,
			tenant, session, next)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `delete from calls where tenant = $1 and session = $2 and epoch < $3`, tenant, session, next)
		return err
	})
	return failed(err, "delete the calls of %s", session)
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error { return failed(pg.Writable(ctx, s.pool), "write") }

// Close implements store.Store.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// failed is the only place that converts the driver's errors.
func failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	if pg.Unavailable(err) {
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
