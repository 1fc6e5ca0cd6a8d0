// Package store keeps sessions: their turns, event logs, message trees, inboxes
// and leases. It declares what a backend promises; the backends are in the
// packages below it and pass the suite in storetest.
//
// The protocol. Anybody may put a command into a session's inbox (Submit). Only
// the holder of the session's lease appends to its log (Commit). A lease is
// taken with Claim, which raises the session's epoch; the database refuses
// every write that carries an older one, so a holder that was paused and wakes
// up again can change nothing. The database's clock decides when a lease ends.
// A notification (Listen) only ever makes somebody look sooner: whoever misses
// it finds the same in the tables.
package store

import (
	"context"
	"errors"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Errors of a Store. Everything else is a failure of the database, and wraps
// ErrUnavailable when the database could not be reached.
var (
	ErrNotFound        = errors.New("not found")
	ErrExists          = errors.New("exists already")
	ErrRequestIDReused = errors.New("request id was used for another request")
	ErrStaleEpoch      = errors.New("the session's lease was lost")
	ErrTurnActive      = errors.New("the session has an active or queued turn")
	ErrNothingToResume = errors.New("no turn has stopped before its end")
	ErrQueueFull       = errors.New("too many turns are queued")
	ErrCallNotWaiting  = errors.New("the call waits for no such answer")
	ErrDigestMismatch  = errors.New("the answer is for other arguments")
	ErrDeleting        = errors.New("the session of this id was deleted, and is still being removed elsewhere")
	ErrNotTiled        = errors.New("the events do not cover the range")
	ErrTooMany         = errors.New("there are as many as there may be")
	ErrUnavailable     = errors.New("the database cannot be reached")
)

// AnsweredError says that the answer to a call is in the inbox already. It is an
// ErrCallNotWaiting.
type AnsweredError struct{ Command Command }

// Error says what happened.
func (*AnsweredError) Error() string { return "the call was answered before" }

// Is reports whether target is ErrCallNotWaiting.
func (*AnsweredError) Is(target error) bool { return target == ErrCallNotWaiting }

// DeleteGrace is when after the deletion of a session its JobDelete is due.
const DeleteGrace = 2 * time.Second

// MaxQueuedTurns bounds the turns that wait in one session.
const MaxQueuedTurns = 100

// Key names a session: its id without `sessions/`, within a tenant.
type Key struct{ Tenant, Session string }

// Lease is the right to append to a session's log, until the database's clock
// reaches its end.
type Lease struct {
	Key
	Epoch int64
	// Suspect says that the session was one when it was claimed: see Claim.
	Suspect bool
	// FenceDue says that a holder before this one did not give its lease back and may
	// wake up, and that nobody has noted since, by Fenced, that it is shut out
	// everywhere.
	FenceDue bool
	// Claims is how often the session was claimed since it last got further, as in
	// Snapshot, which may not be there to be read.
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

// Answer tells what a mutation did.
type Answer struct {
	// Value is what the first mutation with this request id answered: the id of
	// the resource that it made or touched, if any.
	Value string
	// Replayed says that this mutation changed nothing, for it was made before.
	Replayed bool
}

// NewSession is a session to be created.
type NewSession struct {
	Key
	Agent, AgentRevision, Title string
	Labels                      map[string]string
	Budget                      *sessionv1.Budget // nil: none of its own
	Mounts                      []string          // those that it asks for besides its agent's
	// Messages are the first of the conversation, such as the agent's greeting or
	// what a fork takes with it: one path from the root, the last is the head.
	Messages []*sessionv1.Message
	// Event is session.created; it gets sequence number 1.
	Event   *sessionv1.Event
	Request Request
}

// SessionPage asks for a page of sessions, the newest first.
type SessionPage struct {
	Tenant string
	Agent  string // only sessions of this agent, as `agents/{agent}`; empty: all
	// After continues behind this session (create time, then id, both descending).
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// CommandKind says what a command asks for.
type CommandKind string

// The kinds of commands.
const (
	CommandTurn       CommandKind = "turn"        // run the turn TurnID
	CommandInterrupt  CommandKind = "interrupt"   // stop TurnID, if it is still active
	CommandRollback   CommandKind = "rollback"    // stop and undo TurnID, if it is still active
	CommandApproval   CommandKind = "approval"    // the answer to CallID's approval
	CommandToolResult CommandKind = "tool_result" // the result of CallID, of a client's tool
	CommandExpire     CommandKind = "expire"      // the time for an answer to CallID is up
	CommandCompact    CommandKind = "compact"     // shorten the model's view
	CommandRepository CommandKind = "repository"  // append the event in the body, which tells of a repository
	CommandOperation  CommandKind = "operation"   // tell what an operation did with the network, by the body
	CommandMove       CommandKind = "move"        // bring the workspace to another node, if no turn does
	CommandCheckpoint CommandKind = "checkpoint"  // make the checkpoint CallID
	CommandRewind     CommandKind = "rewind"      // go back to a checkpoint; CallID is the rewind's own id
)

// Command is one entry of a session's inbox.
type Command struct {
	ID     int64 // given by the store; increases within a session
	Kind   CommandKind
	TurnID string // without `sessions/{session}/turns/`
	CallID string
	// Target is the turn that takes in the message of TurnID if it comes to
	// another step; empty: none. Given by the store.
	Target string
	Body   []byte // the request, as the server marshaled it
	User   string
	Time   time.Time // given by the store
}

// Submit is a command on its way into an inbox. All of it happens or none.
type Submit struct {
	Key
	Command Command
	Request Request
	// Turn is the turn to create, QUEUED, for CommandTurn.
	Turn *TurnRow
	// RejectIfActive refuses with ErrTurnActive when a turn is active or queued.
	RejectIfActive bool
	// InterruptActive also stops the active turn: an interrupt of it, without a
	// body, goes into the inbox just before the turn.
	InterruptActive bool
	// RollbackActive undoes the active turn in the same way, by a CommandRollback.
	RollbackActive bool
	// SteerActive names the active turn as the Target of the turn's command. Here
	// as above the active turn is the oldest queued one as long as none is.
	SteerActive bool
	// Resume refuses with ErrNothingToResume unless the session has messages and
	// the turn that was accepted last, if there is one, ended and not as COMPLETE.
	Resume bool
	// CancelQueued says that an interrupt ends the queued turns too. Whether or
	// not it is set, TurnID of the interrupt is the active turn or, as long as
	// none is, the oldest queued one: it becomes active as soon as a holder looks.
	CancelQueued bool
	// Digest must be the waiting approval's, for CommandApproval.
	Digest string
}

// TurnRow is a turn with what its loop keeps beside it.
type TurnRow struct {
	Turn *sessionv1.Turn // Name is `sessions/{session}/turns/{id}`
	ID   string
	// Run is the loop's own state, opaque to the store.
	Run []byte
}

// PendingCall is a call that waits for an answer from outside.
type PendingCall struct {
	CallID, TurnID string
	// Answer is the kind of command that answers: CommandApproval or CommandToolResult.
	Answer CommandKind
	// Digest of the arguments, for an approval.
	Digest string
}

// Snapshot is what a holder needs to take up a session.
type Snapshot struct {
	Session  *sessionv1.Session // LastSeq, Head, ActiveTurn, Agent, AgentRevision, Usage …
	Active   *TurnRow           // nil when no turn is active
	Commands []Command          // not yet consumed, by id
	Place    Place              // of the workspace; zero: it has none
	Pending  []PendingCall      // by call id; also those whose answer is among the commands
	// Claims counts how often the active turn was claimed since it began, since
	// its last committed step and since a holder last found nothing left to do
	// (ReleaseIdle), this claim included; claims that ended with Release are not.
	Claims int
}

// Write is what one holder appends at one time. All of it happens or none.
type Write struct {
	Lease
	// Events, with their numbers given: they continue the session's log.
	// LastSeq is the session's last sequence number before them. An event or a
	// message without a time gets the database's, in place, so that what is
	// published is what was written.
	LastSeq int64
	Events  []*sessionv1.Event
	// Messages to add to the tree; Name and Parent are full resource names.
	Messages []*sessionv1.Message
	// Revised replaces messages of the tree, by name. Their parents stay.
	Revised []*sessionv1.Message
	// Head, if not nil, is the new head (a message's id, without the session).
	Head *string
	// Turns to update, by id.
	Turns []*TurnRow
	// ActiveTurn, if not nil, is the id of the turn that is active now; empty: none.
	ActiveTurn *string
	// AddUsage is added to the session's usage.
	AddUsage *sessionv1.Usage
	// FinishedTurns is added to the session's count.
	FinishedTurns int
	// Consume removes these commands from the inbox.
	Consume []int64
	// Wait adds calls that wait; Waited removes calls (by id) that do not any
	// more, with their JobExpire, before Wait and Jobs add. A call that is added again, waiting for the same,
	// keeps the answer that is on its way.
	Wait   []PendingCall
	Waited []string
	// StepCommitted says that the active turn got further: Claims begins anew.
	StepCommitted bool
	// Settle and then Reserve change the tenant's ledger of budgets. Commit puts
	// the answer into each Reserve, in place; one that is denied does not make the
	// write fail.
	Settle  []Settle
	Reserve []*Reserve
	// Checkpoints to add, with their seq given, and ids of checkpoints to remove.
	Checkpoints     []*sessionv1.Checkpoint
	DropCheckpoints []string
	// Place, if not nil, is where the workspace is from now on. Its Export is not
	// looked at: the last one stays.
	Place *Place
	// Made, if not zero, is the generation of a place in which the workspace was made.
	Made int64
	// VoidExports, if not zero, is a number of the log: what was exported by then may have
	// changes that were undone, see Export.Void.
	VoidExports int64
	// Jobs to put, of the session's tenant. A turn that ends in this write puts
	// its JobTend by itself.
	Jobs []Job
}

// Salvage is what is left of a session whose state cannot be worked with: nothing of
// it needs a body that can be read.
type Salvage struct {
	LastSeq int64
	// Turns have not ended, in the order of acceptance. Of one that cannot be read
	// there is nothing but its name.
	Turns    []*sessionv1.Turn
	Commands []int64  // the ids of what is in the inbox
	Pending  []string // the ids of calls that wait for an answer
	// Reservations are open in the ledger of budgets.
	Reservations []string
}

// OnlyEvents tells whether the write brings events and nothing else, as one does
// for each token.
func (w *Write) OnlyEvents() bool {
	return len(w.Messages) == 0 && len(w.Revised) == 0 && w.Head == nil && len(w.Turns) == 0 && w.ActiveTurn == nil && w.AddUsage == nil && w.FinishedTurns == 0 &&
		len(w.Consume) == 0 && len(w.Wait) == 0 && len(w.Waited) == 0 && !w.StepCommitted &&
		len(w.Settle) == 0 && len(w.Reserve) == 0 && len(w.Checkpoints) == 0 && len(w.DropCheckpoints) == 0 && len(w.Jobs) == 0 &&
		w.Place == nil && w.Made == 0
}

// Claim asks for leases.
type Claim struct {
	Replica string
	Limit   int
	TTL     time.Duration
	// Only, if not empty, claims these sessions and no others.
	Only []Key
	// TenantLimit, if not zero, bounds how many sessions of one tenant the claimer
	// holds, with those that it holds already: Held by tenant.
	TenantLimit int
	Held        map[string]int
	// SuspectAt, if not zero, makes a session suspect that was claimed at least so
	// often since it last got further (Snapshot.Claims): it may be what brings its
	// holders down, and whatever they hold besides counts a claim, too. At most
	// Suspects of them are claimed.
	SuspectAt, Suspects int
}

// Wake tells that there is something to look at.
type Wake struct {
	Key
	Kind WakeKind
}

// WakeKind says what there is to look at.
type WakeKind int

// The kinds of wakes.
const (
	WakeInbox  WakeKind = iota // a command was put into the inbox, or a session was released with work left
	WakeEvents                 // events were committed
	WakeLost                   // notifications may have been lost: look at everything
	WakeJobs                   // jobs were put through this Store; it has no key, and other replicas do not hear it
)

// AgentRevision is an agent as it was configured at one time.
type AgentRevision struct {
	Name     string // `agents/{agent}`
	Revision string
	Spec     []byte // opaque to the store
}

// Store keeps sessions. Its methods may be called concurrently. Times are the
// database's own, in UTC with microseconds. A limit of 0 bounds nothing. Lists
// of what a session has answer ErrNotFound when there is no such session, and
// when what they are to continue behind is not there.
type Store interface {
	Schedules
	Webhooks
	Imports
	Checkpoints
	Places
	Variables

	// CreateSession creates a session; ErrExists when its id is taken, ErrDeleting
	// as long as the JobDelete of an earlier session under it has not ended,
	// ErrRequestIDReused.
	CreateSession(ctx context.Context, s NewSession) (Answer, error)
	// GetSession reads a session, or ErrNotFound.
	GetSession(ctx context.Context, k Key) (*sessionv1.Session, error)
	// ListSessions lists a page of sessions.
	ListSessions(ctx context.Context, p SessionPage) ([]*sessionv1.Session, error)
	// DeleteSession deletes a session and all that belongs to it, but for its
	// last epoch: a session that is made again under its id goes on from there. It
	// puts a JobDelete of the session's id, due in DeleteGrace: whoever deletes
	// has that long to claim it by its id and do it at once. Until it has ended no
	// session is made under the id.
	// What it has reserved of budgets that stay counts as used.
	// The answer is kept for 24 hours if the request does not say. ErrTurnActive
	// when a turn is active or queued, ErrNotFound.
	DeleteSession(ctx context.Context, k Key, r Request) (Answer, error)

	// DeleteIdle deletes sessions, of any tenant, in which nothing was committed for
	// as long as idle and nothing is to come: no turn is active or queued, the inbox
	// is empty, no schedule has a time left or is paused, and no message to a
	// webhook is to be sent. At most limit of them, each in a
	// transaction of its own, as DeleteSession does; the JobDeletes are due at once.
	DeleteIdle(ctx context.Context, idle time.Duration, limit int) ([]Key, error)

	// PutAgentRevision keeps a revision; it is immutable, so putting it twice is one.
	PutAgentRevision(ctx context.Context, tenant string, a AgentRevision) error
	// GetAgentRevision reads a revision, or ErrNotFound.
	GetAgentRevision(ctx context.Context, tenant, name, revision string) (AgentRevision, error)

	// Submit puts a command into an inbox and wakes a holder. ErrNotFound,
	// ErrRequestIDReused, ErrTurnActive, ErrQueueFull, ErrNothingToResume, ErrCallNotWaiting,
	// ErrDigestMismatch. The answer's value is the turn's id for a turn, and the
	// id of the turn that it stops (or nothing) for an interrupt. An interrupt
	// with nothing to stop puts no command, nor does one whose turn is about to be
	// stopped anyway. One answer is taken for each waiting
	// call; the next is an *AnsweredError until the first is consumed, and then
	// ErrCallNotWaiting. A CommandExpire changes nothing unless the call waits without
	// an answer. A rewind is ErrTurnActive when a turn is
	// active or queued. The value for a rewind and for a checkpoint is
	// `{CallID}.{seq}`, with the number behind which the log tells what became of it. A turn gets its state, create time and
	// after_seq here.
	Submit(ctx context.Context, s Submit) (Answer, error)
	// GetTurn reads a turn, or ErrNotFound.
	GetTurn(ctx context.Context, k Key, id string) (*sessionv1.Turn, error)
	// ListTurns lists turns behind the one with the id after, in the order of
	// acceptance.
	ListTurns(ctx context.Context, k Key, after string, limit int) ([]*sessionv1.Turn, error)

	// ListEvents reads events whose seq is above afterSeq, in order: at most
	// limit of them and about maxBytes (0: no bound), but at least one.
	ListEvents(ctx context.Context, k Key, afterSeq int64, limit, maxBytes int) ([]*sessionv1.Event, error)
	// FoldEvents replaces the events that cover exactly first..last by others that
	// cover the same, in one transaction; nobody is told, for the log says the same
	// as before. ErrNotTiled when either does not cover the range without gap and
	// overlap, ErrNotFound.
	FoldEvents(ctx context.Context, k Key, first, last int64, events []*sessionv1.Event) error
	// ListMessages reads the path from the root to the head (a message id;
	// empty: the session's), in order, behind the message with the id after.
	ListMessages(ctx context.Context, k Key, head, after string, limit int) ([]*sessionv1.Message, error)

	// IndexMessages makes messages of a session findable that are not yet, at most
	// limit of them, and tells how many those were. ErrNotFound.
	IndexMessages(ctx context.Context, k Key, limit int) (int, error)
	// SearchMessages finds messages, also those that the head has left behind.
	SearchMessages(ctx context.Context, s MessageSearch) ([]*sessionv1.Message, error)

	// Claim takes sessions that have work (a command, or an active turn that is
	// not WAITING) and no unexpired lease, first those that wait longest, one of
	// each tenant before the second of any.
	Claim(ctx context.Context, c Claim) ([]Lease, error)
	// Load reads what a holder needs. ErrStaleEpoch.
	Load(ctx context.Context, l Lease) (*Snapshot, error)
	// Salvage reads what there is to be ended of a session whose state cannot be worked
	// with. What it cannot read it leaves out. ErrStaleEpoch.
	Salvage(ctx context.Context, l Lease) (*Salvage, error)
	// LoadTurn reads one turn with what its loop keeps, such as one that is queued.
	// ErrStaleEpoch, ErrNotFound.
	LoadTurn(ctx context.Context, l Lease, id string) (*TurnRow, error)
	// Fenced notes that tools and sandbox refuse all epochs below the lease's: the next
	// claim has no FenceDue, unless this holder falls silent, too. ErrStaleEpoch.
	Fenced(ctx context.Context, l Lease) error
	// Inbox reads the commands not yet consumed, in order. ErrStaleEpoch.
	Inbox(ctx context.Context, l Lease) ([]Command, error)
	// Commit appends, all writes in one transaction. The error at an index is
	// that write's (ErrStaleEpoch, or a mistake of its maker: events that do not
	// continue the log, names of nothing) and harms no other; the second result is a
	// failure of all of them, after which nobody knows what was written: load
	// again. When it returns, what was written is synced.
	Commit(ctx context.Context, writes []Write) ([]error, error)
	// Balances tells how budgets stand, in the order of the bounds.
	Balances(ctx context.Context, tenant string, bounds []Bound) ([]Balance, error)
	// Renew prolongs leases, all in one statement, and returns those that were lost. A
	// lease that has ended, but that nobody has taken, is prolonged. A session that
	// somebody else works on at that moment holds up no other one's: it is asked for
	// again until ctx ends. Then, too, lost are those that were found so.
	Renew(ctx context.Context, leases []Lease, ttl time.Duration) (lost []Key, err error)
	// Release gives a lease back. A session that still has work can be claimed
	// at once, and its claimers are woken. A claim that ends so is not counted in
	// Claims: it was not the turn that ended it. A lease that was lost is none to give back.
	Release(ctx context.Context, l Lease) error
	// ReleaseIdle gives a lease back if the session has no work left (see Claim),
	// and tells whether it did. ErrStaleEpoch.
	ReleaseIdle(ctx context.Context, l Lease) (bool, error)

	// PutJobs puts jobs, all or none.
	PutJobs(ctx context.Context, jobs []Job) error
	// RequestJobs puts the jobs that a request of a tenant's asks for, all or none, and
	// once: the same request puts none again, even after they have ended.
	// ErrRequestIDReused.
	RequestJobs(ctx context.Context, tenant string, jobs []Job, r Request) (Answer, error)
	// ClaimJobs takes jobs that are due and that nobody else has claimed, first
	// those that wait longest, one of each tenant before the second of any. A claim
	// lasts for the TTL by the database's clock; nothing prolongs it.
	ClaimJobs(ctx context.Context, c JobClaim) ([]Job, error)
	// EndJob removes a job that was claimed or, with again, gives it back with the
	// Due, Body and Attempt of again. ErrStaleEpoch when the claim is not good any
	// more: the job was claimed by another since, was ended, or went with its
	// session. A claim that has lapsed, but that nobody has taken over, is good. The
	// end of a JobDelete frees the session's id.
	EndJob(ctx context.Context, j Job, again *Job) error

	// Listen sends wakes until ctx ends, then closes the channel. A slow
	// receiver loses wakes and gets one WakeLost instead.
	Listen(ctx context.Context) (<-chan Wake, error)
	// Ping tells whether the database takes writes.
	Ping(ctx context.Context) error
	// Close gives everything back; Listen's channels are closed.
	Close() error
}
