package store

import (
	"context"
	"errors"
	"time"
)

// ErrNoOperation says that an operation does not exist, or no longer.
var ErrNoOperation = errors.New("there is no such operation")

// OperationState is the state of an operation.
type OperationState string

// States of an operation. All but Running are final.
const (
	Running   OperationState = "running"
	Succeeded OperationState = "succeeded"
	Failed    OperationState = "failed"
	Stopped   OperationState = "cancelled"
	Unknown   OperationState = "unknown"
	Expired   OperationState = "expired"
)

// NewOperation describes an operation that begins.
type NewOperation struct {
	// User is the user as whom its call ran.
	User string
	// Tool is the name of the tool that started it.
	Tool string
	// Progress describes its work for people. Text shortens it, and the tool's
	// name.
	Progress string
	// TTL bounds its running time.
	TTL time.Duration
}

// OperationKey identifies an operation by the call that started it.
type OperationKey struct{ Tenant, ID string }

// Operation is a stored operation.
type Operation struct {
	OperationKey
	User     string
	Session  string
	Tool     string
	Progress string
	State    OperationState
	// Stopping says that it is to end: it was cancelled, or its session is
	// being deleted.
	Stopping bool
	// Overdue says that its time is up, by the database's clock.
	Overdue bool
	// CreateTime and ExpireTime are the database's. At ExpireTime a running
	// operation is ended, and an ended one is deleted.
	CreateTime, EndTime, ExpireTime time.Time
	ExitCode                        *int32
	// Head and Tail are the beginning and the end of its output, Bytes the
	// length of the output.
	Head, Tail []byte
	Bytes      int64
	// Content is its encoded result, once it has ended.
	Content []byte
	// Claim is the claim of the replica that watches it or watched it last.
	Claim int64
	// Node and Generation say where it runs. Moved says that the workspace has
	// another place by now, so that the operation is over.
	Node       string
	Generation int64
	Moved      bool
}

// OperationNote is a watcher's update of an operation.
type OperationNote struct {
	OperationKey
	Claim      int64
	Head, Tail []byte
	Bytes      int64
	// State ends the operation, unless it is Running.
	State    OperationState
	ExitCode *int32
	Content  []byte
	// Keep is how long an ended operation is kept.
	Keep time.Duration
}

// OperationPage selects operations of a tenant, the newest first.
type OperationPage struct {
	Tenant string
	// Session restricts the list to one session, unless it is empty.
	Session string
	// User restricts the list to one user, unless it is empty.
	User string
	// Running leaves out ended operations.
	Running bool
	// Before is the last operation of the page before; nil for the first page.
	Before *OperationCursor
	Limit  int
}

// OperationCursor is the position of an operation in a list.
type OperationCursor struct {
	CreateTime time.Time
	ID         string
}

// Request is a client's request with its idempotency key.
type Request struct {
	Tenant, Method, ID string
	// Digest distinguishes two requests with the same id.
	Digest []byte
	// Keep is how long the key is kept.
	Keep time.Duration
}

// Operations stores operations. One replica at a time watches an operation,
// under a lease and a claim like those of a call.
type Operations interface {
	// GetOperation reads an operation. One that does not exist is
	// ErrNoOperation.
	GetOperation(ctx context.Context, k OperationKey) (Operation, error)

	// ListOperations reads a page.
	ListOperations(ctx context.Context, p OperationPage) ([]Operation, error)

	// WatchOperations makes a replica the watcher of up to limit unwatched
	// running operations, and extends its existing watches by ttl. It returns
	// all operations that the replica watches now.
	WatchOperations(ctx context.Context, owner string, ttl time.Duration, limit int) ([]Operation, error)

	// NoteOperation stores an update of an operation. It returns ErrConflict if
	// the writer has lost the note's claim, or the operation has ended.
	NoteOperation(ctx context.Context, n OperationNote) error

	// StopOperation asks an operation to end; an ended one does not change. The
	// request is stored with it: repeating it changes nothing, and another one
	// with its id is ErrRequestReused.
	StopOperation(ctx context.Context, k OperationKey, q *Request) (Operation, error)

	// ReadOperation moves the position up to which a reader has seen the output
	// to its end, and returns the previous position. Repeated for the same
	// call, it returns the same position.
	ReadOperation(ctx context.Context, k OperationKey, callID string) (op Operation, from int64, err error)

	// ExpiredOperations lists ended operations that are to be deleted.
	ExpiredOperations(ctx context.Context, limit int) ([]Operation, error)

	// DeleteOperation deletes an operation that has ended. It may be repeated.
	DeleteOperation(ctx context.Context, k OperationKey) error

	// DeleteOperations deletes the operations of a session, whatever their state.
	// It may be repeated.
	DeleteOperations(ctx context.Context, tenant, session string) error

	// Sweep deletes expired keys of requests.
	Sweep(ctx context.Context) error
}
