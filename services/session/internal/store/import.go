package store

import (
	"context"
	"iter"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Import is a session that is made whole, with a history from elsewhere.
type Import struct {
	Key
	Agent, AgentRevision, Title string
	Labels                      map[string]string
	Budget                      *sessionv1.Budget // nil: none of its own
	Mounts                      []string          // those that it asks for besides its agent's
	Usage                       *sessionv1.Usage  // what the turns have used; no ledger is charged with it
	FinishedTurns               int32
	Head                        string // a message's id, which a batch brings; empty: none
	// Batches bring the rows. They may be ranged over more than once, and stop the
	// import with their error.
	Batches iter.Seq2[ImportBatch, error]
	Request Request
}

// ImportBatch is a part of what an imported session has, with names of that
// session. Over all batches the events come in order and cover the log from 1
// on, and turns, all of them ended, come in the order of acceptance.
type ImportBatch struct {
	Turns    []*sessionv1.Turn
	Messages []ImportMessage // in any order
	Events   []*sessionv1.Event
}

// ImportMessage is a message with its place in the tree.
type ImportMessage struct {
	*sessionv1.Message
	Depth int64 // 1 at the root
}

// Imports reads and writes sessions whole.
type Imports interface {
	// ListTree reads messages of a session, also those that the head has left
	// behind, in the order of their ids behind the id after: at most limit of them
	// and about maxBytes (0: no bound), but at least one.
	ListTree(ctx context.Context, k Key, after string, limit, maxBytes int) ([]*sessionv1.Message, error)
	// ImportSession makes a session with all that it is to have, in one
	// transaction, and puts a JobTend for each of its turns, or one if it has none,
	// so that its messages are found. ErrExists, ErrDeleting, ErrRequestIDReused,
	// ErrNotTiled, and the batches' error; the batches are not looked at when the
	// request was made before or the id is taken.
	ImportSession(ctx context.Context, i Import) (Answer, error)
}
