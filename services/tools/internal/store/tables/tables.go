// Package tables has the statements of calls, operations and permissions that Postgres and SQLite share.
package tables

import (
	"context"
	"fmt"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// DB is the database of a store.
type DB interface {
	// Reader queries outside of a transaction.
	Reader() sqldb.Queryer
	// Write runs f in a transaction, again after a conflict.
	Write(ctx context.Context, f func(sqldb.Tx) error) error
	// Unavailable reports whether err means that the database cannot be reached.
	Unavailable(err error) bool
}

// Tables are the methods of a store.Store that both databases share.
type Tables struct {
	calls
	logins
	operations
	permissions
}

// New returns the tables of a database.
func New(db DB) Tables { return Tables{calls{db}, logins{db}, operations{db}, permissions{db}} }

// Failed names the operation that failed. It is the only place that converts errors of the database.
func Failed(db DB, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	if db.Unavailable(err) {
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// changed returns ErrConflict when a statement found no row to change.
func changed(n int64, err error) error {
	if err == nil && n == 0 {
		return store.ErrConflict
	}
	return err
}
