package store

import (
	"context"
	"iter"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Import is a session that is created with a complete history.
type Import struct {
	Key
	User                        string // to whom it belongs
	Agent, AgentRevision, Title string
	AgentVersion                int32 // 0: the agent is of the configuration
	Labels                      map[string]string
	Budget                      *sessionv1.Budget // nil: none of its own
	Mounts                      []*commonv1.Mount // requested besides its agent's
	MetadataJSON                string
	Permissions                 *commonv1.PermissionRules // nil: they do not narrow its agent's
	TurnOptions                 *sessionv1.TurnOptions
	Environment                 string // its name; empty: none
	EnvironmentVersion          int32
	Usage                       *sessionv1.Usage // use of the turns; not charged to any ledger
	FinishedTurns               int32
	Head                        string // id of a message of a batch; empty: none
	// Batches yields the rows. It may be ranged over more than once, and its error
	// stops the import.
	Batches iter.Seq2[ImportBatch, error]
	Request Request
	Caps    []Cap // as of a NewSession
}

// ImportBatch is a part of an imported session, with names of that session.
// Over all batches the events come in order and cover the log from 1 on. The
// turns, which have all ended, come in the order of acceptance.
type ImportBatch struct {
	Turns    []*sessionv1.Turn
	Messages []ImportMessage // in any order
	Events   []*sessionv1.Event
}

// ImportMessage is a message with its depth in the tree.
type ImportMessage struct {
	*sessionv1.Message
	Depth int64 // 1 at the root
}

// Imports reads and writes complete sessions.
type Imports interface {
	// ListTree reads messages of a session, including those that the head has left
	// behind, in the order of their ids, behind the id after: at most limit of
	// them and about maxBytes (0: no bound), but at least one.
	ListTree(ctx context.Context, k Key, after string, limit, maxBytes int) ([]*sessionv1.Message, error)
	// ImportSession creates a session with its history in one transaction. It puts
	// a JobAfterTurn for each of its turns, or one if it has none, so that its messages
	// are found. ErrExists, ErrDeleting, ErrRequestIDReused, ErrNotTiled, and the
	// batches' error. It does not read the batches when the request was made before
	// or the id is taken.
	ImportSession(ctx context.Context, i Import) (Answer, error)
}
