// Package store keeps sessions: their turns, event logs, message trees, inboxes
// and leases. It declares what a backend promises; the backends are in the
// packages below it and pass the suite in storetest.
//
// The protocol. Every caller may put a command into a session's inbox (Submit).
// Only the holder of the session's lease appends to its log (Commit). A lease
// is taken with Claim, which raises the session's epoch. The database refuses
// every write with an older epoch, so a holder that was paused and wakes up
// again can change nothing. The database's clock decides when a lease ends. A
// notification (Listen) only makes a reader look sooner: a reader that misses
// it finds the same in the tables.
package store

import (
	"context"
	"errors"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Errors of a Store. Any other error is a failure of the database; it wraps ErrUnavailable when the database could not be reached.
var (
	ErrNotFound        = errors.New("not found")
	ErrExists          = errors.New("exists already")
	ErrRequestIDReused = errors.New("request id was used for another request")
	ErrStaleEpoch      = errors.New("the session's lease was lost")
	ErrTurnActive      = errors.New("the session has an active or queued turn")
	ErrTurnNotActive   = errors.New("the turn is not active")
	ErrNothingToResume = errors.New("no turn has stopped before its end")
	ErrQueueFull       = errors.New("too many turns are queued")
	ErrCallNotWaiting  = errors.New("the call does not wait for this kind of answer")
	ErrDigestMismatch  = errors.New("the answer is for other arguments")
	ErrDeleting        = errors.New("the session of this id was deleted, and is still being removed elsewhere")
	ErrNotTiled        = errors.New("the events do not cover the range")
	ErrTooMany         = errors.New("the most allowed exist already")
	ErrUnavailable     = errors.New("the database cannot be reached")
	ErrSubagent        = errors.New("a subagent works in the session")
	ErrManySubagents   = errors.New("as many subagents work as may")
)

// AnsweredError says that the inbox already has an answer to a call. It is an
// ErrCallNotWaiting.
type AnsweredError struct{ Command Command }

// Error says what happened.
func (*AnsweredError) Error() string { return "the call was answered before" }

// Is reports whether target is ErrCallNotWaiting.
func (*AnsweredError) Is(target error) bool { return target == ErrCallNotWaiting }

// DeleteGrace is the time between the deletion of a session and the due time of its JobDelete.
const DeleteGrace = 2 * time.Second

// MaxQueuedTurns bounds the turns that wait in one session.
const MaxQueuedTurns = 100

// Key names a session: its id without `sessions/`, within a tenant.
type Key struct{ Tenant, Session string }

// Lease is the right to append to a session's log, until it ends by the
// database's clock.
type Lease struct {
	Key
	Epoch int64
	// Suspect says that the session was suspect when it was claimed: see Claim.
	Suspect bool
	// FenceDue says that an earlier holder did not release its lease and may wake up,
	// and that Fenced has not been called since.
	FenceDue bool
	// Claims counts the claims since the session last made progress, as in
	// Snapshot, which may not be readable.
	Claims int
}

// Request is the idempotency key of a mutation. Its scope is the tenant of the
// mutation, Method and Parent.
type Request struct {
	Method, Parent, ID string
	Digest             []byte // of the request without its id
	// KeepUntil is when the key may be forgotten; zero means with the session.
	KeepUntil time.Time
}

// Answer is the result of a mutation.
type Answer struct {
	// Value is the answer of the first mutation with this request id: the id of
	// the resource that it made or touched, if any.
	Value string
	// Replayed says that this mutation changed nothing because it was made
	// before.
	Replayed bool
	// Lease, if not nil, is the lease under which the submitter holds the session: see Submit.Claim.
	Lease *Lease
}

// NewSession describes a session to be created.
type NewSession struct {
	Key
	User                        string // to whom it belongs
	Agent, AgentRevision, Title string
	AgentVersion                int32 // 0: the agent is of the configuration
	Labels                      map[string]string
	Budget                      *sessionv1.Budget // nil: none of its own
	MetadataJSON                string
	TurnOptions                 *sessionv1.TurnOptions
	Environment                 string // its name; empty: none
	EnvironmentVersion          int32
	Additions
	// CallerKey is the caller's own key; empty: none. Replace archives the session that has
	// it, and stops its turns, with the creation.
	CallerKey string
	Replace   bool
	Beginning
	// Messages begin the conversation, such as the agent's greeting or the
	// messages that a fork copies: one path from the root, whose last message is
	// the head.
	Messages []*sessionv1.Message
	// Event is session.created; it gets sequence number 1.
	Event   *sessionv1.Event
	Request Request
	Caps    []Cap // bound the sessions, this one included; otherwise a CapError
}

// SessionPage selects a page of sessions, the newest first.
type SessionPage struct {
	Tenant string
	Agent  string // only sessions of this agent, as `agents/{agent}`; empty: all
	User   string // only sessions of this user, by id; empty: all
	// Labels must all match. CallerKey and State select, too, unless they are zero.
	Labels    map[string]string
	CallerKey string
	State     sessionv1.SessionState
	// Parent selects the sessions of this one's subagents, by id; empty: those of no subagent.
	Parent string
	// Archived selects archived sessions instead of the others. OldestFirst reverses the
	// order.
	Archived, OldestFirst bool
	// After continues behind this session (create time, then id, both descending).
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// TurnRow is a turn with its loop's state.
type TurnRow struct {
	Turn *sessionv1.Turn // Name is `sessions/{session}/turns/{id}`
	ID   string
	// Run is the loop's own state, opaque to the store.
	Run []byte
}

// PendingCall is a call that waits for an answer from outside.
type PendingCall struct {
	CallID, TurnID string
	// Answer is the kind of command that answers: CommandApproval, CommandAnswer or
	// CommandToolResult.
	Answer CommandKind
	// Digest of the arguments, for an approval, or the id of a question.
	Digest string
	// User is the id of the user to whom the session belongs, and Shown what people see of
	// the question; nil: the call waits for no person. They are written and not loaded, and
	// the store sets the rest of Shown from its row.
	User  string
	Shown *sessionv1.PendingApproval
}

// Snapshot is what a holder needs to take over a session.
type Snapshot struct {
	Session  *sessionv1.Session // LastSeq, Head, ActiveTurn, Agent, AgentRevision, Usage …
	Active   *TurnRow           // nil when no turn is active
	Commands []Command          // not yet consumed, by id
	Place    Place              // of the workspace; zero: none
	Pending  []PendingCall      // by call id; including those whose answer is among the commands
	// Claims counts the claims of the active turn, including this one, since it
	// began, since its last committed step and since ReleaseIdle last found no
	// work. Claims that ended with Release do not count.
	Claims int
}

// Salvage is the readable part of a session whose state cannot be used. Nothing in
// it needs a readable body.
type Salvage struct {
	LastSeq int64
	// Turns have not ended, in the order of acceptance. A turn that cannot be read
	// has only its name.
	Turns    []*sessionv1.Turn
	Commands []int64  // the ids of the commands in the inbox
	Pending  []string // the ids of calls that wait for an answer
	// Reservations are the open ones in the ledger of budgets.
	Reservations []string
}

// OnlyEvents reports whether the write has only events, as the write of each
// token does.
func (w *Write) OnlyEvents() bool {
	return len(w.Messages) == 0 && len(w.Revised) == 0 && w.Head == nil && len(w.Turns) == 0 && w.ActiveTurn == nil && w.AddUsage == nil && w.FinishedTurns == 0 &&
		len(w.Consume) == 0 && len(w.Wait) == 0 && len(w.Waited) == 0 && !w.StepCommitted &&
		len(w.Settle) == 0 && len(w.Reserve) == 0 && len(w.Checkpoints) == 0 && len(w.DropCheckpoints) == 0 && len(w.Jobs) == 0 &&
		w.Place == nil && w.Made == 0
}

// Claim requests leases.
type Claim struct {
	Replica string
	Limit   int
	TTL     time.Duration
	// Only, if not empty, restricts the claim to these sessions.
	Only []Key
	// TenantLimit, if not zero, bounds how many sessions of one tenant the claimer
	// holds, including those that it holds already: Held by tenant.
	TenantLimit int
	Held        map[string]int
	// SuspectAt, if not zero, is the number of claims without progress
	// (Snapshot.Claims) from which on a session is suspect: it may be what crashes
	// its holders, and each crash also counts as a claim of the other sessions
	// that they hold. At most Suspects of them are claimed.
	SuspectAt, Suspects int
	// Depth claims sessions of subagents of this depth; 0: of none.
	Depth int
}

// Wake tells a reader to look at something.
type Wake struct {
	Key
	Kind WakeKind
}

// WakeKind is what to look at.
type WakeKind int

// The kinds of wakes.
const (
	WakeInbox   WakeKind = iota // a command was put into the inbox, or a session with work left was released
	WakeEvents                  // events were committed
	WakeLost                    // notifications may have been lost: look at everything
	WakeJobs                    // jobs were put through this Store; it has no key, and other replicas do not get it
	WakeSession                 // a session has changed in a way that its log does not have
)

// Store keeps sessions. Its methods may be called concurrently. Times are the
// database's own, in UTC with microseconds. A limit of 0 bounds nothing. Lists
// of a session's resources return ErrNotFound when the session does not exist,
// or the item after which they are to continue.
type Store interface {
	Agents
	Approvals
	Attachments
	SessionChanges
	Schedules
	Triggers
	Webhooks
	Imports
	Checkpoints
	Feedbacks
	Places
	Variables
	RequestKeys
	MCPServers
	Identities
	Files
	Audit
	Ledger
	WorkQueues

	// CreateSession creates a session; ErrExists when its id is taken, ErrDeleting
	// as long as the JobDelete of an earlier session under it has not ended,
	// *KeyTakenError, ErrRequestIDReused. For a child see NewSession.Child.
	CreateSession(ctx context.Context, s NewSession) (Answer, error)
	// GetSession reads a session, or ErrNotFound.
	GetSession(ctx context.Context, k Key) (*sessionv1.Session, error)
	// SessionOwner reads the id of the user to whom a session belongs, or ErrNotFound.
	SessionOwner(ctx context.Context, k Key) (string, error)
	// ListSessions lists a page of sessions.
	ListSessions(ctx context.Context, p SessionPage) ([]*sessionv1.Session, error)
	// DeleteSession deletes a session with everything that belongs to it, except
	// its last epoch: a session that is created again under its id continues from
	// there. It puts a JobDelete with the session's id, due in DeleteGrace: until
	// then the caller may claim the job by its id and do it at once. No session is
	// created under the id until the job has ended. Reservations in budgets that
	// outlive the session count as used. The answer is kept for 24 hours if the
	// request does not say how long. The sessions of its subagents are deleted with it.
	// ErrTurnActive when a turn is active or queued, also of a subagent; ErrSubagent,
	// ErrNotFound.
	DeleteSession(ctx context.Context, k Key, r Request) (Answer, error)

	// DeleteIdle deletes sessions, of any tenant, in which nothing was committed for
	// the time idle and nothing is pending: no turn is active or queued, the inbox
	// is empty, no schedule has a time left or is paused, and no message to a
	// webhook is unsent. It deletes at most limit sessions, each in a transaction of
	// its own, as DeleteSession does; the JobDeletes are due at once.
	DeleteIdle(ctx context.Context, idle time.Duration, limit int) ([]Key, error)

	// Submit puts a command into an inbox and wakes a holder. ErrNotFound, ErrRequestIDReused, ErrTurnActive,
	// ErrQueueFull, ErrTurnNotActive, ErrNothingToResume, ErrCallNotWaiting, ErrDigestMismatch, ErrArchived, ErrSubagent. A turn gets its state, create
	// time and after_seq here.
	//
	// The answer's value is the turn's id for a turn, and the id of the turn that it stops (or "") for an
	// interrupt. For a rewind and a checkpoint it is `{CallID}.{seq}`: the event with the result has a number
	// above seq.
	//
	// An interrupt puts no command if there is nothing to stop, or if its turn is about to be stopped anyway.
	// Each waiting call takes one answer; the next one is an *AnsweredError until the first is consumed, and
	// then ErrCallNotWaiting. A CommandExpire changes nothing unless the call waits without an answer. A
	// rewind is ErrTurnActive when a turn is active or queued.
	Submit(ctx context.Context, s Submit) (Answer, error)

	// LeaseTokens takes tokens out of a bucket that all replicas share. A new bucket is full.
	LeaseTokens(ctx context.Context, l TokenLease) (granted int64, err error)
	// GetTurn reads a turn, or ErrNotFound.
	GetTurn(ctx context.Context, k Key, id string) (*sessionv1.Turn, error)
	// TurnOfRequest reads the turn that a request with an id made, or ErrNotFound. The methods are those that make
	// turns; the first that did counts.
	TurnOfRequest(ctx context.Context, k Key, requestID string, methods ...string) (*sessionv1.Turn, error)
	// ListTurns lists turns behind the one with the id after, in the order of
	// acceptance.
	ListTurns(ctx context.Context, k Key, after string, limit int) ([]*sessionv1.Turn, error)

	// ListEvents reads events whose seq is above afterSeq, in order: at most
	// limit of them and about maxBytes (0: no bound), but at least one.
	ListEvents(ctx context.Context, k Key, afterSeq int64, limit, maxBytes int) ([]*sessionv1.Event, error)
	// FoldEvents replaces the events that cover exactly first..last by others that
	// cover the same, in one transaction. It sends no wake, because the content of
	// the log is unchanged. ErrNotTiled when either does not cover the range
	// without gap and overlap, ErrNotFound.
	FoldEvents(ctx context.Context, k Key, first, last int64, events []*sessionv1.Event) error
	// ListMessages reads the path from the root to the head (a message id;
	// empty: the session's), in order, behind the message with the id after.
	ListMessages(ctx context.Context, k Key, head, after string, limit int) ([]*sessionv1.Message, error)

	// IndexMessages makes at most limit messages of a session searchable, and
	// returns how many it indexed. ErrNotFound.
	IndexMessages(ctx context.Context, k Key, limit int) (int, error)
	// SearchMessages finds messages, including those that the head has left
	// behind.
	SearchMessages(ctx context.Context, s MessageSearch) ([]*sessionv1.Message, error)

	// Claim takes sessions that have work (a command, or an active turn that is
	// not WAITING) and no unexpired lease. The sessions that wait longest come
	// first, and one of each tenant before the second of any.
	Claim(ctx context.Context, c Claim) ([]Lease, error)
	// Load reads what a holder needs. ErrStaleEpoch.
	Load(ctx context.Context, l Lease) (*Snapshot, error)
	// Salvage reads what must be ended of a session whose state cannot be used. It
	// leaves out what it cannot read. ErrStaleEpoch.
	Salvage(ctx context.Context, l Lease) (*Salvage, error)
	// LoadTurn reads one turn with its loop's state, such as a queued one.
	// ErrStaleEpoch, ErrNotFound.
	LoadTurn(ctx context.Context, l Lease, id string) (*TurnRow, error)
	// Fenced records that tools and sandbox refuse all epochs below the lease's: the
	// next claim has no FenceDue, unless this holder also fails to release its lease.
	// ErrStaleEpoch.
	Fenced(ctx context.Context, l Lease) error
	// Inbox reads the commands not yet consumed, in order. ErrStaleEpoch.
	Inbox(ctx context.Context, l Lease) ([]Command, error)
	// Commit appends all writes in one transaction. The error at an index belongs to
	// that write (ErrStaleEpoch, or a fault of the write: events that do not
	// continue the log, names that do not exist) and affects no other write. The
	// second result is a failure of all writes, after which it is unknown what was
	// written: load again. When Commit returns, the writes are synced.
	Commit(ctx context.Context, writes []Write) ([]error, error)
	// Renew extends leases, all in one statement, and returns the lost ones. It also
	// extends a lease that has ended but was not taken. A session that another
	// transaction locks at that moment does not delay the others: Renew retries it
	// until ctx ends. Even then, lost has only the leases that are known to be lost.
	Renew(ctx context.Context, leases []Lease, ttl time.Duration) (lost []Key, err error)
	// Release returns a lease. A session that still has work can be claimed at once, and its
	// claimers are woken. A claim that ends so does not count in Claims: the turn did not
	// end it. Releasing a lost lease changes nothing.
	Release(ctx context.Context, l Lease) error
	// PassOn is Release for one claimer: until the TTL ends, only the replica claims the session.
	PassOn(ctx context.Context, l Lease, replica string, ttl time.Duration) error
	// ReleaseIdle returns a lease if the session has no work left (see Claim),
	// and reports whether it did. ErrStaleEpoch.
	ReleaseIdle(ctx context.Context, l Lease) (bool, error)

	// PutJobs puts jobs, all or none.
	PutJobs(ctx context.Context, jobs []Job) error
	// RequestJobs puts the jobs of a tenant's request, all or none, and only once: the
	// same request puts none again, even after they have ended. ErrRequestIDReused.
	RequestJobs(ctx context.Context, tenant string, jobs []Job, r Request) (Answer, error)
	// ClaimJobs takes jobs that are due and not claimed. The jobs that wait longest
	// come first, and one of each tenant before the second of any. A claim lasts
	// for the TTL by the database's clock and cannot be extended.
	ClaimJobs(ctx context.Context, c JobClaim) ([]Job, error)
	// EndJob removes a claimed job or, with again, returns it with the Due, Body and
	// Attempt of again. ErrStaleEpoch when the claim is no longer valid: the job was
	// claimed again since, has ended, or went with its session. An expired claim is
	// valid as long as the job is not claimed again. The end of a JobDelete frees
	// the session's id.
	EndJob(ctx context.Context, j Job, again *Job) error

	// Listen sends wakes until ctx ends, then closes the channel. A slow
	// receiver loses wakes and gets one WakeLost instead.
	Listen(ctx context.Context) (<-chan Wake, error)
	// Ping checks that the database takes writes.
	Ping(ctx context.Context) error
	// Close releases all resources and closes Listen's channels.
	Close() error
}
