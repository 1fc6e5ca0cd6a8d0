package store

import (
	"context"
	"errors"
	"time"
)

// ErrNoOperation says that there is no such operation, any more or at all.
var ErrNoOperation = errors.New("there is no such operation")

// OperationState is where an operation stands.
type OperationState string

// The states of an operation. All but Running are final.
const (
	Running   OperationState = "running"
	Succeeded OperationState = "succeeded"
	Failed    OperationState = "failed"
	Stopped   OperationState = "cancelled"
	Unknown   OperationState = "unknown"
	Expired   OperationState = "expired"
)

// NewOperation is an operation that begins.
type NewOperation struct {
	// Tool is the name of the tool that started it.
	Tool string
	// Progress says for people what it does. Text shortens it, and the tool's name.
	Progress string
	// TTL is how long it may run.
	TTL time.Duration
}

// OperationKey names an operation: by the call that started it.
type OperationKey struct{ Tenant, ID string }

// Operation is what is known of an operation.
type Operation struct {
	OperationKey
	Session  string
	Tool     string
	Progress string
	State    OperationState
	// Stopping says that it was asked to end: cancelled, or, while its session
	// is being deleted, given up.
	Stopping bool
	// Overdue says that its time was up, by the database's clock.
	Overdue bool
	// CreateTime and ExpireTime are the database's. ExpireTime is when a running
	// one is ended, and when one that ended is deleted.
	CreateTime, EndTime, ExpireTime time.Time
	ExitCode                        *int32
	// Head and Tail are the beginning and the end of its output, Bytes how long
	// the output is.
	Head, Tail []byte
	Bytes      int64
	// Content is what it brought, encoded, once it has ended.
	Content []byte
	// Claim is that of the replica that watches it, or the last one that did.
	Claim int64
	// Node and Generation say where it runs. Moved says that the workspace has
	// another place by now: what ran in this one is over.
	Node       string
	Generation int64
	Moved      bool
}

// OperationNote is what a watcher writes down of an operation that it holds.
type OperationNote struct {
	OperationKey
	Claim      int64
	Head, Tail []byte
	Bytes      int64
	// State ends the operation, unless it is Running.
	State    OperationState
	ExitCode *int32
	Content  []byte
	// Keep is how long an operation that has ended is kept.
	Keep time.Duration
}

// OperationPage asks for operations of a tenant, the newest first.
type OperationPage struct {
	Tenant string
	// Session narrows to one session, unless it is empty.
	Session string
	// Running leaves out those that have ended.
	Running bool
	// Before is the last operation of the page before; nil begins.
	Before *OperationCursor
	Limit  int
}

// OperationCursor is the place of an operation in a list.
type OperationCursor struct {
	CreateTime time.Time
	ID         string
}

// Request is a client's request with its idempotency key.
type Request struct {
	Tenant, Method, ID string
	// Digest tells two requests with one id apart.
	Digest []byte
	// Keep is how long the key is kept.
	Keep time.Duration
}

// Operations keeps operations. An operation is watched by one replica at a time,
// under a lease and a claim as a call is made.
type Operations interface {
	// GetOperation reads an operation. One that does not exist is
	// ErrNoOperation.
	GetOperation(ctx context.Context, k OperationKey) (Operation, error)

	// ListOperations reads a page.
	ListOperations(ctx context.Context, p OperationPage) ([]Operation, error)

	// WatchOperations makes a replica the watcher of up to limit running
	// operations that nobody watches, and gives those it watches another ttl.
	// It returns all that it watches now.
	WatchOperations(ctx context.Context, owner string, ttl time.Duration, limit int) ([]Operation, error)

	// NoteOperation writes down what became of an operation. Whoever does not
	// hold it under the note's claim any more, or comes after its end, is refused
	// with ErrConflict.
	NoteOperation(ctx context.Context, n OperationNote) error

	// StopOperation asks an operation to end; one that has ended stays as it is.
	// The request is noted with it: repeating it changes nothing, and another one
	// with its id is ErrRequestReused.
	StopOperation(ctx context.Context, k OperationKey, q *Request) (Operation, error)

	// ReadOperation moves the place up to which a reader has seen the output to
	// its end, and returns where the reader had been before. Repeated for the
	// same call it returns the same place.
	ReadOperation(ctx context.Context, k OperationKey, callID string) (op Operation, from int64, err error)

	// ExpiredOperations lists operations that ended and are to be deleted.
	ExpiredOperations(ctx context.Context, limit int) ([]Operation, error)

	// DeleteOperation deletes an operation that has ended. It may be repeated.
	DeleteOperation(ctx context.Context, k OperationKey) error

	// DeleteOperations deletes the operations of a session, whatever their state.
	// It may be repeated.
	DeleteOperations(ctx context.Context, tenant, session string) error

	// Sweep deletes what is too old: keys of requests.
	Sweep(ctx context.Context) error
}
