package store

import (
	"time"
)

// CommandKind is a kind of command.
type CommandKind string

// The kinds of commands.
const (
	CommandTurn       CommandKind = "turn"        // run the turn TurnID
	CommandCall       CommandKind = "call"        // run the turn TurnID, which is a call; an older version must not take it for a message
	CommandInterrupt  CommandKind = "interrupt"   // stop TurnID, if it is still active
	CommandRollback   CommandKind = "rollback"    // stop and undo TurnID, if it is still active
	CommandMode       CommandKind = "mode"        // change the permission mode of TurnID, if it is still active
	CommandApproval   CommandKind = "approval"    // the answer to CallID's approval
	CommandToolResult CommandKind = "tool_result" // the result of CallID, of a client's tool
	CommandAnswer     CommandKind = "answer"      // the answer to CallID's question
	CommandExpire     CommandKind = "expire"      // the time for an answer to CallID is up
	CommandCompact    CommandKind = "compact"     // shorten the model's view
	CommandRepository CommandKind = "repository"  // append the event in the body, which tells of a repository
	CommandOperation  CommandKind = "operation"   // tell how an operation ended, by the body
	CommandMove       CommandKind = "move"        // bring the workspace to another node, if no turn does
	CommandCheckpoint CommandKind = "checkpoint"  // make the checkpoint CallID
	CommandRewind     CommandKind = "rewind"      // go back to a checkpoint; CallID is the rewind's own id
	CommandFeedback   CommandKind = "feedback"    // keep the feedback CallID about TurnID
)

// Settles reports whether the command belongs to work that was accepted before. An archived session takes no
// other ones.
func (k CommandKind) Settles() bool {
	switch k {
	case CommandInterrupt, CommandMode, CommandApproval, CommandToolResult, CommandAnswer, CommandExpire, CommandOperation, CommandMove, CommandFeedback:
		return true
	case CommandTurn, CommandCall, CommandRollback, CommandCompact, CommandRepository, CommandCheckpoint, CommandRewind:
	}
	return false
}

// Command is one entry of a session's inbox.
type Command struct {
	ID     int64 // set by the store; increases within a session
	Kind   CommandKind
	TurnID string // without `sessions/{session}/turns/`
	CallID string
	// Target is the turn that takes in the message of TurnID if it makes
	// another step; empty: none. Set by the store.
	Target string
	Body   []byte // the request, as the server marshaled it
	User   string
	Time   time.Time // set by the store
}

// Claimer is who claims a session, and for how long.
type Claimer struct {
	Replica string
	TTL     time.Duration
}

// Submit is a command to put into an inbox. It is atomic.
type Submit struct {
	Key
	Command Command
	Request Request
	// Turn is the turn to create, QUEUED, for CommandTurn and CommandCall.
	Turn *TurnRow
	// Caps bound the unfinished turns, this one included; otherwise a CapError. They
	// do not refuse a turn that stops, undoes or steers another.
	Caps []Cap
	// RejectIfActive refuses with ErrTurnActive when a turn is active or queued.
	RejectIfActive bool
	// InterruptActive also stops the active turn: an interrupt of it, without a
	// body, goes into the inbox just before the turn.
	InterruptActive bool
	// RollbackActive undoes the active turn in the same way, by a CommandRollback.
	RollbackActive bool
	// SteerActive names the active turn as the Target of the turn's command. Here
	// and above, the oldest queued turn counts as active if no turn is.
	SteerActive bool
	// Resume refuses with ErrNothingToResume unless the session has messages and
	// the turn that was accepted last, calls not counted, if there is one, ended in
	// another state than COMPLETE.
	Resume bool
	// CancelQueued says that an interrupt also ends the queued turns. TurnID of an
	// interrupt that names none is the active turn or, without one, the oldest
	// queued one: it becomes active when a holder takes the session.
	CancelQueued bool
	// FromParent says that the turn is the one for which a subagent's session is made.
	FromParent bool
	// Claim, if not nil, also claims the session, unless it is held, promised or fenced, or has other work to do: that is left to
	// Claim, which knows who comes first. A claimed session wakes no claimer.
	Claim *Claimer
	// Digest must match the digest of the waiting approval, for CommandApproval, or the
	// id of the waiting question, for CommandAnswer.
	Digest string
}
