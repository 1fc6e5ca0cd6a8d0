// Package store keeps the journal of calls and the highest epoch seen of every
// session. Its backends live below it and pass one suite, storetest.
package store

import (
	"context"
	"errors"
	"math"
	"time"
)

// NoEpoch is above every epoch of a session.
const NoEpoch = math.MaxInt64

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
	// Node is the sandbox node that has the workspace; empty: the only one.
	// Generation is that of the workspace's place there; 0: nobody said.
	Node       string
	Generation int64
}

// Owner is a replica that makes calls or watches operations.
type Owner struct {
	// ID is made anew whenever the replica starts.
	ID string
	// Address is where the other replicas reach its peer face. Empty when there
	// are none.
	Address string
}

// Record is what is known of a call.
type Record struct {
	// Session is the one that the call was made for.
	Session string
	// State is None for a call that was never heard of.
	State State
	// Tool, by Text, and Digest identify the tool and the exact arguments; both are
	// empty for a call that was cancelled before it was made.
	Tool   string
	Digest string
	// Handed says that the call was delegated at some time.
	Handed bool
	// Result is what was recorded, for Finished and Cancelled.
	Result []byte

	// Owner makes the call, or made it before it ended. Set once it was started.
	Owner Owner
	// Claim counts the owners that a call has had: 1 is who started it. Whoever
	// acts on a claim that is not the last one is refused.
	Claim int64
	// Live says that the owner's lease has not ended, by the database's clock.
	Live bool
	// Begun says that the sandbox was seen to have what the call started.
	Begun bool
	// Node and Generation say where the call was started.
	Node       string
	Generation int64
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
	// Owner takes a call that starts, under the first claim, for the time TTL.
	Owner Owner
	TTL   time.Duration
	// Claim refuses the change of a started call, as ErrConflict, when somebody
	// else has taken the call over. Zero refuses nobody.
	Claim int64
	// Operation begins together with the change, which ends the call that handed
	// it back.
	Operation *NewOperation
	// At is when it happened.
	At time.Time
}

// Held is a call that a replica makes, under its claim.
type Held struct {
	Tenant, CallID string
	Claim          int64
	// Begun says that the sandbox has what the call started.
	Begun bool
}

// Store keeps calls and operations. All methods are safe for concurrent use, atomic, and
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

	// TakeOver makes a replica the owner of a started call under the next claim,
	// if the call's claim is still the given one and its lease has ended or is
	// the replica's own: otherwise ErrConflict. It is fenced as Move can be.
	TakeOver(ctx context.Context, ref Ref, claim int64, owner Owner, ttl time.Duration) error

	// Renew gives the calls that a replica holds another ttl, all in one
	// statement, and notes which have begun. It returns those that the replica
	// holds no more: they ended, or were taken over.
	Renew(ctx context.Context, owner string, ttl time.Duration, held []Held) (lost []Held, err error)

	// Release ends the leases of a replica, of calls and operations, so that
	// others may take them over at once.
	Release(ctx context.Context, owner string) error

	// DeleteSession forgets the calls of a session that were made under an epoch
	// below next, and refuses these epochs from then on: NoEpoch refuses all that
	// there can be. It may be repeated.
	DeleteSession(ctx context.Context, tenant, session string, next int64) error

	Operations

	// Ping says whether the database takes writes.
	Ping(ctx context.Context) error

	// Close frees the database.
	Close() error
}
