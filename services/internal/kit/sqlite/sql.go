package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
)

// Querier is a pool or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// SQL runs the statements of sqldb. Clock is the time of the database.
type SQL struct {
	Querier Querier
	Clock   func() time.Time
}

var _ sqldb.Tx = SQL{}

// lacking is what Postgres's statements have and SQLite's have not.
var lacking = regexp.MustCompile(`::[a-z]+(\[\])?|\s+for (no key update|update|key share)( of [a-z]+)?( skip locked)?`)

var renamed = strings.NewReplacer("clock_timestamp()", "$now", "greatest(", "max(")

// translated has every statement that has run.
var translated sync.Map

// prepare returns the statement and its arguments for SQLite.
func (s SQL) prepare(query string, args []any) (string, []any) {
	text, ok := translated.Load(query)
	if !ok {
		text = renamed.Replace(lacking.ReplaceAllString(query, ""))
		translated.Store(query, text)
	}
	out := make([]any, len(args), len(args)+1)
	for i, a := range args {
		out[i] = column(a)
	}
	if query = text.(string); strings.Contains(query, "$now") { //nolint:forcetypeassert // it is stored above
		out = append(out, sql.Named("now", s.Clock().UnixMicro()))
	}
	return query, out
}

// column returns an argument as it is stored.
func column(a any) any {
	switch v := a.(type) {
	case time.Time:
		return v.UnixMicro()
	case *time.Time:
		if v == nil {
			return nil
		}
		return v.UnixMicro()
	case time.Duration:
		return v.Microseconds()
	}
	return a
}

// Row returns a row that reads times.
func Row(r sqldb.Row) sqldb.Row { return row{r} }

type row struct{ sqldb.Row }

// Scan implements sqldb.Row.
func (r row) Scan(dest ...any) error {
	to := make([]any, len(dest))
	for i, d := range dest {
		switch t := d.(type) {
		case *time.Time:
			to[i] = instant{func(at time.Time) { *t = at }, func() { *t = time.Time{} }}
		case **time.Time:
			to[i] = instant{func(at time.Time) { *t = &at }, func() { *t = nil }}
		case *sqldb.Raw:
			to[i] = (*sql.RawBytes)(t)
		default:
			to[i] = d
		}
	}
	return r.Row.Scan(to...)
}

// instant reads a stored time.
type instant struct {
	set  func(time.Time)
	null func()
}

// Scan implements sql.Scanner.
func (i instant) Scan(src any) error {
	var us sql.NullInt64
	if err := us.Scan(src); err != nil {
		return err
	}
	if us.Valid {
		i.set(time.UnixMicro(us.Int64).UTC())
	} else {
		i.null()
	}
	return nil
}

// QueryRow implements sqldb.Queryer.
func (s SQL) QueryRow(ctx context.Context, query string, args ...any) sqldb.Row {
	query, args = s.prepare(query, args)
	return row{s.Querier.QueryRowContext(ctx, query, args...)}
}

// Query implements sqldb.Queryer.
func (s SQL) Query(ctx context.Context, each func(sqldb.Row) error, query string, args ...any) (err error) {
	query, args = s.prepare(query, args)
	rows, err := s.Querier.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
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
	query, args = s.prepare(query, args)
	done, err := s.Querier.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// Send implements sqldb.Tx.
func (s SQL) Send(ctx context.Context, all ...sqldb.Statement) ([]int64, error) {
	changed := make([]int64, len(all))
	for i, st := range all {
		n, err := s.Exec(ctx, st.Query, st.Args...)
		if err != nil {
			return nil, err
		}
		changed[i] = n
	}
	return changed, nil
}

// Now implements sqldb.Tx.
func (s SQL) Now(context.Context) (time.Time, error) {
	return s.Clock().UTC().Truncate(time.Microsecond), nil
}

// Lock implements sqldb.Tx: the transactions that write run one after another.
func (SQL) Lock(context.Context, string) error { return nil }
