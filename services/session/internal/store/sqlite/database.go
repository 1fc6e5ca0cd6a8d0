package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// database is the tables.DB of a file.
type database struct {
	*sqlite.DB
	wakes *plan.Broadcast
	log   *slog.Logger
	now   func() time.Time
}

// clock returns the time in the database's precision.
func (d *database) clock() time.Time { return plan.Micros(d.now()) }

// Reader implements tables.DB.
func (d *database) Reader() sqldb.Queryer { return sqlite.SQL{Querier: d.R, Clock: d.now} }

// errEnough ends a query that has read enough.
var errEnough = errors.New("enough")

// Bodies implements tables.DB. The query ends as soon as it has read enough.
func (d *database) Bodies(ctx context.Context, maxBytes int, query string, args ...any) (bodies [][]byte, err error) {
	size := 0
	err = d.Reader().Query(ctx, func(r sqldb.Row) error {
		var place any
		var body []byte
		if err := r.Scan(&place, &body); err != nil {
			return err
		}
		if size += len(body); maxBytes > 0 && size > maxBytes && len(bodies) > 0 {
			return errEnough
		}
		bodies = append(bodies, body)
		return nil
	}, query, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return bodies, err
}

// Read implements tables.DB.
func (d *database) Read(ctx context.Context, what string, f func(sqldb.Queryer) error) error {
	return d.read(ctx, what, func(tx *sql.Tx) error { return f(sqlite.SQL{Querier: tx, Clock: d.now}) })
}

// Write implements tables.DB. The time stands still in a transaction.
func (d *database) Write(ctx context.Context, what string, f func(tables.Tx) ([]store.Wake, error)) error {
	return d.write(ctx, what, d.still(f))
}

// WriteUnsynced implements tables.DB.
func (d *database) WriteUnsynced(ctx context.Context, what string, f func(tables.Tx) error) error {
	return d.writeBy(ctx, d.TxUnsynced, what, d.still(func(tx tables.Tx) ([]store.Wake, error) { return nil, f(tx) }))
}

// still returns f for a transaction in which the time stands still.
func (d *database) still(f func(tables.Tx) ([]store.Wake, error)) func(*sql.Tx) ([]store.Wake, error) {
	return func(tx *sql.Tx) ([]store.Wake, error) {
		now := d.clock()
		return f(transaction{sqlite.SQL{Querier: tx, Clock: func() time.Time { return now }}, tx})
	}
}

// Exec implements tables.DB.
func (d *database) Exec(ctx context.Context, what, query string, args ...any) (int64, error) {
	n, err := sqlite.SQL{Querier: d.W, Clock: d.now}.Exec(ctx, query, args...)
	return n, d.Fail(what, err)
}

// write runs f in a transaction of its own, and sends the wakes that f returns
// after the commit.
func (d *database) write(ctx context.Context, what string, f func(tx *sql.Tx) ([]store.Wake, error)) error {
	return d.writeBy(ctx, d.Tx, what, f)
}

// writeBy is write with a kind of transaction.
func (d *database) writeBy(ctx context.Context, by func(context.Context, func(*sql.Tx) error) error, what string, f func(tx *sql.Tx) ([]store.Wake, error)) error {
	var wakes []store.Wake
	err := by(ctx, func(tx *sql.Tx) (err error) {
		wakes, err = f(tx)
		return err
	})
	if err == nil {
		d.wakes.Send(wakes...)
	}
	return d.Fail(what, err)
}

// read runs f in a transaction that sees a snapshot of the database.
func (d *database) read(ctx context.Context, what string, f func(tx *sql.Tx) error) error {
	tx, err := d.R.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return d.Fail(what, err)
	}
	err = f(tx)
	if end := tx.Rollback(); end != nil && !errors.Is(end, sql.ErrTxDone) {
		d.log.WarnContext(ctx, "cannot end a read", "error", end)
	}
	return d.Fail(what, err)
}

// Fail implements tables.DB.
func (*database) Fail(what string, err error) error {
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

// transaction is a tables.Tx.
type transaction struct {
	sqlite.SQL
	tx *sql.Tx
}

// Insert implements tables.Tx.
func (t transaction) Insert(ctx context.Context, r tables.Rows) error {
	return errors.Join(
		each(ctx, t.tx, "insert into turns (tenant, session, turn, number, state, body) values (?, ?, ?, ?, ?, ?)",
			r.Turns, func(t plan.Turn) []any { return []any{t.Tenant, t.Session, t.ID, t.Number, t.State, t.Body} }),
		insertMessages(ctx, t.tx, r.Messages), each(ctx, t.tx, insertEvent, r.Events, eventArgs), insertJobs(ctx, t.tx, r.Jobs),
	)
}

// Unindex implements tables.Tx: the table of words has no column for the session.
func (t transaction) Unindex(ctx context.Context, k store.Key) error {
	_, err := t.tx.ExecContext(ctx, "delete from message_words where rowid in (select id from message_index where tenant = ? and session = ?)",
		k.Tenant, k.Session)
	return err
}

func insertJobs(ctx context.Context, tx *sql.Tx, jobs []store.Job) error {
	return each(ctx, tx, "insert into jobs (tenant, kind, job, session, body, due) values (?, ?, ?, ?, ?, ?) on conflict do nothing",
		jobs, func(j store.Job) []any {
			return []any{j.Tenant, string(j.Kind), j.ID, j.Session, j.Body, micros(j.Due)}
		})
}

// sql runs the statements of sqldb in a transaction.
func (s *Store) sql(tx *sql.Tx) sqlite.SQL { return sqlite.SQL{Querier: tx, Clock: s.db.now} }
