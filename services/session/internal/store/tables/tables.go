// Package tables has the statements that Postgres and SQLite share, with one type for each subject.
//
// The packages postgres and sqlite embed Tables. They add what differs: claims, commits, searches and long reads.
package tables

import (
	"context"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// DB is the database of a store. The errors of its methods name the operation.
type DB interface {
	// Reader queries outside of a transaction. Fail names the operation of its errors.
	Reader() sqldb.Queryer
	Fail(what string, err error) error
	// Bodies returns the column body of a query up to about maxBytes (0: no bound), but at least of one row. The
	// query also has the column place, which orders it.
	Bodies(ctx context.Context, maxBytes int, query string, args ...any) ([][]byte, error)
	// Read runs f in a transaction that sees a snapshot of the database.
	Read(ctx context.Context, what string, f func(sqldb.Queryer) error) error
	// Write runs f in a transaction, again after a conflict. The wakes of f are sent with its commit.
	Write(ctx context.Context, what string, f func(Tx) ([]store.Wake, error)) error
	// WriteUnsynced is Write for what may be done again: a crash of the database's machine may lose the commit, unless a
	// Write follows it.
	WriteUnsynced(ctx context.Context, what string, f func(Tx) error) error
	// Exec runs one statement in a transaction of its own, and returns how many rows it has changed.
	Exec(ctx context.Context, what, query string, args ...any) (changed int64, err error)
}

// Tx is a transaction that writes.
type Tx interface {
	sqldb.Tx
	// Insert inserts many rows.
	Insert(ctx context.Context, r Rows) error
	// Unindex deletes what an index outside of the tables has of a session's messages.
	Unindex(ctx context.Context, k store.Key) error
}

// Rows are rows of the tables that grow with a session.
type Rows struct {
	Turns    []plan.Turn
	Messages []plan.Message
	Events   []plan.Event
	Jobs     []store.Job
}

// Tables are the methods of a store.Store that both databases share.
type Tables struct {
	audits
	agents
	approvals
	attachments
	checkpoints
	files
	identities
	inbox
	jobs
	leases
	limits
	logs
	mcpServers
	places
	schedules
	sessions
	triggers
	turns
	variables
	webhooks
}

// New returns the tables of a database.
func New(db DB) Tables {
	return Tables{
		audits{db}, agents{db}, approvals{db}, attachments{db}, checkpoints{db, feedbacks{db}}, files{db}, identities{db}, inbox{db}, jobs{db}, leases{db, workQueues{db}}, limits{db}, logs{db}, mcpServers{db}, places{db},
		schedules{db}, sessions{db}, triggers{db}, turns{db}, variables{db}, webhooks{db},
	}
}

// changed returns store.ErrNotFound for a statement that has changed nothing.
func changed(n int64, err error) error {
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}
