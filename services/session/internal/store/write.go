package store

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Write is what a holder appends at one time. It is atomic.
type Write struct {
	Lease
	// Events continue the session's log; their numbers are set. LastSeq is the
	// session's last sequence number before them. Commit sets the database's
	// time in place in events and messages without a time, so that what is
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
	// Wait adds waiting calls. Waited removes calls (by id) that no longer wait, with their JobExpire, before
	// Wait and Jobs add. A call that is added again, waiting for the same, keeps an answer that is in the
	// inbox.
	Wait   []PendingCall
	Waited []string
	// StepCommitted says that the active turn made progress: Claims begins
	// anew.
	StepCommitted bool
	// Settle and then Reserve change the tenant's ledger of budgets. Commit sets
	// the answer of each Reserve in place; a denial does not fail the write.
	Settle  []Settle
	Reserve []*Reserve
	// Checkpoints to add, with their seq set, and ids of checkpoints to remove.
	Checkpoints     []*sessionv1.Checkpoint
	DropCheckpoints []string
	PlaceChange
	// Jobs to put, of the session's tenant. A turn that ends in this write adds
	// its own JobAfterTurn.
	Jobs []Job
}

// PlaceChange changes the place of a session's workspace.
type PlaceChange struct {
	// Place, if not nil, is the new place of the workspace. Its Export is
	// ignored: the last one stays.
	Place *Place
	// Made, if not zero, is the generation of a place in which the workspace was made.
	Made int64
	// VoidExports, if not zero, is a sequence number: exports up to it may have changes
	// that were undone, see Export.Void.
	VoidExports int64
}
