// Package sqldb lets a store write a statement once for Postgres and SQLite.
//
// Statements are written for Postgres, with the placeholders $1, $2 and so on. kit/pg runs them as they are.
// kit/sqlite leaves out what SQLite lacks and does not need: casts (::text) and locking clauses, because a
// transaction that writes has the file for itself. There clock_timestamp() is the clock of the program.
//
// Arguments and results may be of the types time.Time, *time.Time and time.Duration. SQLite stores them as
// microseconds. A query without a row returns sql.ErrNoRows from both.
package sqldb

import (
	"context"
	"math"
	"time"
)

// Row is one row of a result.
type Row interface {
	Scan(dest ...any) error
}

// Raw is a result that is valid until the next row is read.
type Raw []byte

// Queryer reads.
type Queryer interface {
	// QueryRow returns the first row of a query. Its Scan returns an error of the query.
	QueryRow(ctx context.Context, query string, args ...any) Row
	// Query calls each for every row of a query, until it returns an error.
	Query(ctx context.Context, each func(Row) error, query string, args ...any) error
}

// Tx is a transaction that writes.
type Tx interface {
	Queryer
	// Exec runs a statement and returns how many rows it has changed.
	Exec(ctx context.Context, query string, args ...any) (changed int64, err error)
	// Send runs statements in one round trip and returns how many rows each has changed.
	Send(ctx context.Context, all ...Statement) (changed []int64, err error)
	// Now returns the time of the database, in microseconds.
	Now(ctx context.Context) (time.Time, error)
	// Lock waits for the other transactions that have locked the same name.
	Lock(ctx context.Context, name string) error
}

// Statement is a statement with its arguments.
type Statement struct {
	Query string
	Args  []any
}

// S returns a statement.
func S(query string, args ...any) Statement { return Statement{query, args} }

// Collect reads all rows of a query.
func Collect[T any](ctx context.Context, q Queryer, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	err := q.Query(ctx, func(r Row) error {
		v, err := scan(r)
		all = append(all, v)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Value reads a row of one column.
func Value[T any](r Row) (v T, err error) { return v, r.Scan(&v) }

// Limit returns the argument of a limit clause; 0 means no limit.
func Limit(n int) int64 {
	if n <= 0 {
		return math.MaxInt64
	}
	return int64(n)
}

// Null returns nil for the zero time.
func Null(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
