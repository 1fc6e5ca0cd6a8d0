package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
)

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// SQL runs the statements of sqldb.
type SQL struct{ Querier Querier }

var _ sqldb.Tx = SQL{}

// Row returns a row whose times are in UTC.
func Row(r pgx.Row) sqldb.Row { return row{r} }

type row struct{ pgx.Row }

// Scan implements sqldb.Row.
func (r row) Scan(dest ...any) error {
	for i, d := range dest {
		if raw, ok := d.(*sqldb.Raw); ok {
			dest[i] = (*pgtype.DriverBytes)(raw)
		}
	}
	if err := r.Row.Scan(dest...); err != nil {
		return err
	}
	for _, d := range dest {
		switch t := d.(type) {
		case *time.Time:
			*t = t.UTC()
		case **time.Time:
			if *t != nil {
				**t = (*t).UTC()
			}
		}
	}
	return nil
}

// QueryRow implements sqldb.Queryer.
func (s SQL) QueryRow(ctx context.Context, query string, args ...any) sqldb.Row {
	return row{s.Querier.QueryRow(ctx, query, args...)}
}

// Query implements sqldb.Queryer.
func (s SQL) Query(ctx context.Context, each func(sqldb.Row) error, query string, args ...any) error {
	rows, err := s.Querier.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	r := Row(rows)
	for rows.Next() {
		if err := each(r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Exec implements sqldb.Tx.
func (s SQL) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := s.Querier.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

// Send implements sqldb.Tx.
func (s SQL) Send(ctx context.Context, all ...sqldb.Statement) ([]int64, error) {
	b := &pgx.Batch{}
	changed := make([]int64, len(all))
	for i, st := range all {
		b.Queue(st.Query, st.Args...).Exec(func(tag pgconn.CommandTag) error {
			changed[i] = tag.RowsAffected()
			return nil
		})
	}
	return changed, s.Querier.SendBatch(ctx, b).Close()
}

// Now implements sqldb.Tx.
func (s SQL) Now(ctx context.Context) (t time.Time, err error) {
	err = s.QueryRow(ctx, "select clock_timestamp()").Scan(&t)
	return t, err
}

// Lock implements sqldb.Tx: the lock ends with the transaction.
func (s SQL) Lock(ctx context.Context, name string) error {
	_, err := s.Querier.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", name)
	return err
}
