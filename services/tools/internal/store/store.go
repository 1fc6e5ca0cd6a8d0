// Package store keeps the journal of calls and the highest epoch seen of every
// session. Its backends are in the packages below it and pass one suite,
// storetest.
package store

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"
)

// NoEpoch is above every epoch of a session.
const NoEpoch = math.MaxInt64

// ErrStaleEpoch refuses a caller whose epoch is lower than the highest one seen
// of the session, or whose session was deleted.
var ErrStaleEpoch = errors.New("the epoch is lower than the highest one seen of the session")

// ErrConflict says that a call is not in the expected state, because another
// replica has moved it. Read it again.
var ErrConflict = errors.New("the call is in another state")

// ErrRequestReused says that a request's id was used for another request.
var ErrRequestReused = errors.New("the request id was used for another request")

// ErrUnavailable says that the database cannot be reached or takes no work now.
var ErrUnavailable = errors.New("the database cannot be reached")

// State is the state of a call.
type State string

// States of a call. A call only moves forward: from none to any, from Asked to
// any later one, from Started to Asked for a question, from Delegated and Started to Finished or Cancelled.
const (
	// None is the state of an unknown call.
	None State = ""
	// Asked calls wait for an approval, or for the answer to a question.
	Asked State = "asked"
	// Delegated calls are done by the caller.
	Delegated State = "delegated"
	// Started calls run, or were running when their process ended.
	Started State = "started"
	// Finished calls have a result.
	Finished State = "finished"
	// Cancelled calls were stopped, or must never start.
	Cancelled State = "cancelled"
)

// Ref identifies a call and the epoch of its session.
type Ref struct {
	// Tenant owns the session. It is never empty.
	Tenant string
	// Session is the session's resource name.
	Session string
	// Epoch is the epoch under which the caller holds the session.
	Epoch int64
	// Holder is the session that makes the call, if it works in the workspace of
	// Session; empty: Session itself. The epoch is the holder's.
	Holder string
	// CallID is unique within the tenant.
	CallID string
	// Node is the sandbox node that has the workspace; empty: the only one.
	// Generation is that of the workspace's place there; 0: not given.
	Node       string
	Generation int64
}

// Fenced returns the session whose epochs fence the call.
func (r Ref) Fenced() string { return cmp.Or(r.Holder, r.Session) }

// Owner is a replica that makes calls or watches operations.
type Owner struct {
	// ID is new whenever the replica starts.
	ID string
	// Address is the address of its peer face for the other replicas, if any.
	Address string
}

// Record is the journal's entry of a call.
type Record struct {
	// Session is the one that the call was made for.
	Session string
	// State is None for an unknown call.
	State State
	// Tool, by Text, and Digest identify the tool and the exact arguments; both are
	// empty for a call that was cancelled before it was made.
	Tool   string
	Digest string
	// Handed says that the call was delegated at some time.
	Handed bool
	// Question is what the call asked a person last, with what it needs to go on.
	Question []byte
	// Result is the recorded result, for Finished and Cancelled.
	Result []byte
	// Arguments are those with which the call runs in place of the model's, if a person
	// changed them.
	Arguments []byte
	// Permissions is the version of the tenant's profiles and grants. An unknown call has
	// it, too.
	Permissions int64

	// Owner makes the call, or made it before it ended. It is set once the call
	// was started.
	Owner Owner
	// Claim counts the owners of a call: 1 is the first one. An action under an
	// older claim is refused.
	Claim int64
	// Live says that the owner's lease has not ended, by the database's clock.
	Live bool
	// Begun says that the sandbox was seen to have the call's command.
	Begun bool
	// Node and Generation say where the call was started.
	Node       string
	Generation int64
}

// Change moves a call from one state to another.
type Change struct {
	From, To State
	// Fenced refuses the change when Ref.Epoch is stale. A start is fenced; an
	// end is a fact and is not fenced.
	Fenced bool
	// Tool and Digest are kept from the record when they are empty.
	Tool   string
	Digest string
	// Question is kept from the record when it is nil.
	Question []byte
	// Result is recorded with the new state.
	Result []byte
	// Owner becomes the owner of a call that starts, under the first claim, for
	// the time TTL.
	Owner Owner
	TTL   time.Duration
	// Claim refuses the change of a started call with ErrConflict when another
	// replica has taken the call over. Zero refuses nothing.
	Claim int64
	// Arguments, unless they are nil, are those with which the call runs.
	Arguments []byte
	// Grant is stored together with the change.
	Grant *Grant
	// Operation begins together with the change, which ends the call that handed
	// it back.
	Operation *NewOperation
	// At is the time of the change.
	At time.Time
}

// Held is a call that a replica makes, under its claim.
type Held struct {
	Tenant, CallID string
	Claim          int64
	// Begun says that the sandbox has the call's command.
	Begun bool
}

// Presence is the part of a store that several replicas share which knows at once that one of them has died.
type Presence interface {
	// KeepPresent shows until ctx ends that a replica lives, and ends the leases of those that died.
	KeepPresent(ctx context.Context, replica string)
}

// Store stores calls, operations and permissions. All methods are safe for concurrent use, atomic,
// and durable when they return. If the driver cannot reach its database, the error is
// ErrUnavailable.
type Store interface {
	// Enter stores the epoch of a session and reads a call. An epoch lower than
	// the stored one is ErrStaleEpoch. An unknown call is a Record in state
	// None, not an error.
	Enter(ctx context.Context, ref Ref) (Record, error)

	// Move changes a call, if it is in state c.From: otherwise ErrConflict. Of
	// several moves from the same state exactly one succeeds.
	Move(ctx context.Context, ref Ref, c Change) error

	// TakeOver makes a replica the owner of a started call under the next claim,
	// if the call has the given claim and its lease has ended or is the
	// replica's own; otherwise it returns ErrConflict. It is fenced like a Move.
	TakeOver(ctx context.Context, ref Ref, claim int64, owner Owner, ttl time.Duration) error

	// Renew extends the leases of a replica's calls by ttl, all in one
	// statement, and stores which have begun. It returns the calls that the
	// replica has lost: they ended, or were taken over.
	Renew(ctx context.Context, owner string, ttl time.Duration, held []Held) (lost []Held, err error)

	// Release ends a replica's leases of calls and operations, so that other
	// replicas may take them over at once.
	Release(ctx context.Context, owner string) error

	// DeleteSession deletes the calls of a session that were made under an epoch
	// below next, and the session's grants, and refuses these epochs from then on:
	// NoEpoch refuses all epochs. It may be repeated.
	DeleteSession(ctx context.Context, tenant, session string, next int64) error

	Operations

	Permissions

	Logins

	// Ping checks that the database takes writes.
	Ping(ctx context.Context) error

	// Close closes the database.
	Close() error
}
