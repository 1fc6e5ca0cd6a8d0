// Package store keeps the journal of calls and the highest epoch seen of every
// session. Its backends live below it and pass one suite, storetest.
package store

import (
	"context"
	"errors"
	"time"
)

// ErrStaleEpoch refuses a caller whose epoch is lower than the highest one that
// was seen of the session, or whose session was deleted.
var ErrStaleEpoch = errors.New("the epoch is lower than the highest one seen of the session")

// ErrConflict says that a call is not in the state that it was to be moved from:
// somebody else has moved it. Read it again.
var ErrConflict = errors.New("the call is in another state")

// ErrRequestReused says that a request's id was used for another request.
var ErrRequestReused = errors.New("the request id was used for another request")

// ErrUnavailable says that the database cannot be reached or takes no work now.
var ErrUnavailable = errors.New("the database cannot be reached")

// State is how far a call is.
type State string

// The states of a call. A call moves forward only: from none to any, from Asked
// to any later one, from Delegated and Started to Finished or Cancelled.
const (
	// None is the state of a call that was never heard of.
	None State = ""
	// Asked calls wait for a person.
	Asked State = "asked"
	// Delegated calls are done by the caller.
	Delegated State = "delegated"
	// Started calls run, or were running when their process ended.
	Started State = "started"
	// Finished calls have a result.
	Finished State = "finished"
	// Cancelled calls were stopped, or are never to start.
	Cancelled State = "cancelled"
)

// Ref says which call is meant, and under which epoch of its session.
type Ref struct {
	// Tenant owns the session. It is never empty.
	Tenant string
	// Session is the session's resource name.
	Session string
	// Epoch is what the caller holds the session under.
	Epoch int64
	// CallID is unique within the tenant.
	CallID string
}

// Record is what is known of a call.
type Record struct {
	// Session is the one that the call was made for.
	Session string
	// State is None for a call that was never heard of.
	State State
	// Tool and Digest identify the tool and the exact arguments; both are empty
	// for a call that was cancelled before it was made.
	Tool   string
	Digest string
	// Handed says that the call was delegated at some time.
	Handed bool
	// Result is what was recorded, for Finished and Cancelled.
	Result []byte
}

// Change moves a call from one state to another.
type Change struct {
	From, To State
	// Fenced refuses the change when Ref.Epoch is stale. What starts is fenced;
	// what ended is a fact, whoever holds the session now.
	Fenced bool
	// Tool and Digest are kept from the record when they are empty.
	Tool   string
	Digest string
	// Result is recorded with the new state.
	Result []byte
	// At is when it happened.
	At time.Time
}

// Store keeps calls. All methods are safe for concurrent use, atomic, and
// durable when they return. A driver's failure to reach its database is
// ErrUnavailable.
type Store interface {
	// Enter notes the epoch of a session and reads a call. An epoch lower than
	// one noted before is ErrStaleEpoch. A call that was never heard of is a
	// Record in state None, not an error.
	Enter(ctx context.Context, ref Ref) (Record, error)

	// Move changes a call, if it is in state c.From: otherwise ErrConflict. Of
	// several moves from the same state exactly one succeeds.
	Move(ctx context.Context, ref Ref, c Change) error

	// DeleteSession forgets the calls of a session, and refuses every epoch of
	// it from then on. It may be repeated.
	DeleteSession(ctx context.Context, tenant, session string) error

	// Ping says whether the database can be reached.
	Ping(ctx context.Context) error

	// Close frees the database.
	Close() error
}
