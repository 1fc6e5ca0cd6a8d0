package store

import (
	"context"
	"time"
)

// Place is the place of a session's workspace.
type Place struct {
	Node string // its name; empty: none, the workspace was deleted
	// Generation grows each time the workspace gets another place, also when the
	// session is deleted and made again under its id.
	Generation int64
	// Restore says that the files must still be copied to the node from the last
	// export. It becomes false once they are there.
	Restore bool
	// Made says that the workspace was made in this place: its node has it, or has lost
	// it. It applies to this generation only and, once set, stays set.
	Made bool
	// Left is the previous place while Restore is set.
	Left Left
	// Export is the last one; its Seq is zero without any.
	Export Export
}

// Left is the place that a workspace has left, and the reason.
type Left struct {
	Node string
	Why  Why
}

// Why is the reason why a workspace leaves a place.
type Why string

// Reasons. An older replica, which does not know reasons, writes none.
const (
	Planned  Why = "planned" // an operator's wish: what was copied last was copied for it
	NodeLost Why = "lost"    // its node is lost
	DiskLost Why = "emptied" // its node is there, and does not have it any more
)

// Lost reports whether the workspace could not be copied when it left.
func (l Left) Lost() bool { return l.Why == NodeLost || l.Why == DiskLost }

// Export is a copy of the workspace in the object store.
type Export struct {
	Turn     string    // made at its end, or later; empty: not known, or no turn
	Seq      int64     // the log's last number at that turn's end, or when files were restored
	Snapshot string    // in the sandbox
	Time     time.Time // set by the store; zero: see Void
}

// Void reports whether files were restored since the export, or perhaps in the middle
// of it, up to Seq: it may have changes that were undone.
func (e Export) Void() bool { return e.Seq > 0 && e.Time.IsZero() }

// HoldTime is how long the id of a deleted session is only for the user to whom it
// belonged: as long as request ids are kept, so that no repeated request, open stream
// or remembered owner meets a session of another user.
const HoldTime = 24 * time.Hour

// Places stores the places of workspaces. A session without a place has never
// needed one, or is older than the support of several nodes. A holder sets the
// place with Write.Place and reads it with Load.
type Places interface {
	// PlaceOf reads a session's place and its current epoch (0: the session is
	// gone). ErrNotFound without a place; the epoch is valid all the same.
	PlaceOf(ctx context.Context, k Key) (Place, int64, error)
	// PlaceNew sets the place of a session that is about to be created. It returns
	// the session's place: the existing one if there is one.
	PlaceNew(ctx context.Context, k Key, p Place) (Place, error)
	// HoldID keeps the id of a session that is about to be created for a user: until
	// HoldTime has passed, no other user can create it. ErrExists if it is another's.
	HoldID(ctx context.Context, k Key, user string) error
	// ForgetPlace records that the workspace and its exports were deleted. The
	// generation stays.
	ForgetPlace(ctx context.Context, k Key) error
	// NoteMade records that the workspace was made in a place of this generation.
	// ErrNotFound when the session has another place now, or none.
	NoteMade(ctx context.Context, k Key, generation int64) error
	// NoteExport records an export of a place of this generation, and that the workspace
	// was made there. ErrNotFound when the session has another place now. An export older
	// than the last one, or older than Write.VoidExports, changes nothing.
	NoteExport(ctx context.Context, k Key, generation int64, e Export) error
	// PlacedOn lists sessions on a node behind the key after, in the order of keys.
	PlacedOn(ctx context.Context, node string, after Key, limit int) ([]Key, error)
	// SetDraining starts or ends the draining of a node: a draining node gets
	// no more workspaces.
	SetDraining(ctx context.Context, node string, draining bool) error
	// Draining lists the draining nodes.
	Draining(ctx context.Context) ([]string, error)
}
