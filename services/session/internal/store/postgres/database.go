package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// database is the tables.DB of a pool.
type database struct {
	pool  *pgxpool.Pool
	wakes *plan.Broadcast
}

// Reader implements tables.DB.
func (d database) Reader() sqldb.Queryer { return pg.SQL{Querier: d.pool} }

// Fail implements tables.DB.
func (database) Fail(what string, err error) error { return fail(what, err) }

// Bodies implements tables.DB. The database adds the sizes up, so that it sends no more than that.
func (d database) Bodies(ctx context.Context, maxBytes int, query string, args ...any) ([][]byte, error) {
	if maxBytes > 0 {
		args = append(args, maxBytes)
		query = fmt.Sprintf(`
			select body from (
				select place, body, row_number() over w as nth, sum(octet_length(body)) over w as total from (%s) e window w as (order by place)
			) e where nth = 1 or total <= $%d order by place`, query, len(args))
	} else {
		query = "select body from (" + query + ") e order by place"
	}
	return collect(ctx, d.pool, pgx.RowTo[[]byte], query, args...)
}

// Read implements tables.DB.
func (d database) Read(ctx context.Context, what string, f func(sqldb.Queryer) error) error {
	return d.read(ctx, what, func(tx pgx.Tx) error { return f(pg.SQL{Querier: tx}) })
}

// Write implements tables.DB. The wakes reach all replicas, except those of jobs, which only this one looks for.
func (d database) Write(ctx context.Context, what string, f func(tables.Tx) ([]store.Wake, error)) error {
	var jobs bool
	err := d.write(ctx, what, func(tx pgx.Tx) error {
		wakes, err := f(transaction{pg.SQL{Querier: tx}, tx})
		if err != nil {
			return err
		}
		all := len(wakes)
		wakes = slices.DeleteFunc(wakes, func(w store.Wake) bool { return w.Kind == store.WakeJobs })
		if jobs = len(wakes) < all; len(wakes) == 0 {
			return nil
		}
		b := &pgx.Batch{}
		queueNotify(b, wakes...)
		return tx.SendBatch(ctx, b).Close()
	})
	if jobs && err == nil {
		d.wakes.Send(store.Wake{Kind: store.WakeJobs})
	}
	return err
}

// WriteUnsynced implements tables.DB.
func (d database) WriteUnsynced(ctx context.Context, what string, f func(tables.Tx) error) error {
	return d.writeUnsynced(ctx, what, func(tx pgx.Tx) error { return f(transaction{pg.SQL{Querier: tx}, tx}) })
}

// writeUnsynced is write without the wait for the disk.
func (d database) writeUnsynced(ctx context.Context, what string, f func(tx pgx.Tx) error) error {
	return fail(what, pg.TxWith(ctx, d.pool, pgx.TxOptions{BeginQuery: "begin; set local synchronous_commit = off"}, f))
}

// Exec implements tables.DB.
func (d database) Exec(ctx context.Context, what, query string, args ...any) (changed int64, err error) {
	err = pg.Retry(ctx, func() (err error) {
		changed, err = pg.SQL{Querier: d.pool}.Exec(ctx, query, args...)
		return err
	})
	return changed, fail(what, err)
}

// write runs f in a transaction, and again if it loses a conflict.
func (d database) write(ctx context.Context, what string, f func(tx pgx.Tx) error) error {
	return fail(what, pg.Tx(ctx, d.pool, f))
}

// read runs f in a transaction that sees a snapshot of the database.
func (d database) read(ctx context.Context, what string, f func(tx pgx.Tx) error) error {
	return fail(what, pg.TxWith(ctx, d.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f))
}

// transaction is a tables.Tx.
type transaction struct {
	pg.SQL
	tx pgx.Tx
}

// Insert implements tables.Tx.
func (t transaction) Insert(ctx context.Context, r tables.Rows) error {
	b := &pgx.Batch{}
	for _, t := range r.Turns {
		b.Queue("insert into turns (tenant, session, turn, number, state, body) values ($1, $2, $3, $4, $5, $6)",
			t.Tenant, t.Session, t.ID, t.Number, int32(t.State), t.Body)
	}
	queueMessages(b, r.Messages)
	queueEvents(b, r.Events)
	queueJobs(b, r.Jobs)
	if b.Len() == 0 {
		return nil
	}
	return t.tx.SendBatch(ctx, b).Close()
}

// Unindex implements tables.Tx: the index is one of the tables.
func (transaction) Unindex(context.Context, store.Key) error { return nil }

// fail adds the operation to an error.
func fail(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows): // pgx.ErrNoRows is one
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	case pg.Unavailable(err):
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
