package store

import (
	"context"
	"time"
)

// Place is where a session's workspace is.
type Place struct {
	Node string // its name; empty: nowhere, for it was deleted
	// Generation grows each time the workspace gets another place, also when the
	// session is deleted and made again under its id.
	Generation int64
	// Restore says that the files are still to be brought to the node from the last
	// export. Whoever sets it false says that they are there.
	Restore bool
	// Made says that the workspace was made in this place: its node has it, or has lost
	// it. It is of this generation alone, and once it is set it stays.
	Made bool
	// Left is what the workspace comes from as long as Restore is set.
	Left Left
	// Export is the last one; its Seq is zero when there is none.
	Export Export
}

// Left is the place that a workspace has left, and why.
type Left struct {
	Node string
	Why  Why
}

// Why says why a workspace leaves a place.
type Why string

// The reasons. None is that of a replica of an older version, which did not say.
const (
	Planned  Why = "planned" // an operator's wish: what was copied last was copied for it
	NodeLost Why = "lost"    // its node is lost
	DiskLost Why = "emptied" // its node is there, and does not have it any more
)

// Lost tells whether the workspace was not there to be copied when it left.
func (l Left) Lost() bool { return l.Why == NodeLost || l.Why == DiskLost }

// Export is a copy of the workspace in the object store.
type Export struct {
	Turn     string    // at whose end it was made, or after it; empty: it is not known, or there was none
	Seq      int64     // the log's last number at that turn's end, or when files were brought back
	Snapshot string    // in the sandbox
	Time     time.Time // given by the store; zero: see Void
}

// Void tells whether files were brought back since the export, or perhaps in the middle
// of it, up to Seq: it may have changes that were undone.
func (e Export) Void() bool { return e.Seq > 0 && e.Time.IsZero() }

// Places keeps where workspaces are. A session that has none has never needed one,
// or is of a time before there were several nodes. A holder sets the place with
// Write.Place, and reads it with Load.
type Places interface {
	// PlaceOf reads a session's place, and its epoch as it is now (0: the session is
	// gone). ErrNotFound when it has none; the epoch counts all the same.
	PlaceOf(ctx context.Context, k Key) (Place, int64, error)
	// PlaceNew sets the place of a session that is about to be made, and returns the
	// one that it has: another one if it has one already.
	PlaceNew(ctx context.Context, k Key, p Place) (Place, error)
	// ForgetPlace says that the workspace and its exports were deleted. The
	// generation stays.
	ForgetPlace(ctx context.Context, k Key) error
	// NoteMade records that the workspace was made in a place of this generation.
	// ErrNotFound when the session has another place by now, or none.
	NoteMade(ctx context.Context, k Key, generation int64) error
	// NoteExport records an export of a place of this generation. ErrNotFound when the
	// session has another place by now. An older export than the last one, and
	// one that is older than Write.VoidExports, changes nothing. What is exported was made.
	NoteExport(ctx context.Context, k Key, generation int64, e Export) error
	// PlacedOn lists sessions on a node behind the key after, in the order of keys.
	PlacedOn(ctx context.Context, node string, after Key, limit int) ([]Key, error)
	// SetDraining says whether a node is to get no more workspaces.
	SetDraining(ctx context.Context, node string, draining bool) error
	// Draining lists the nodes that are to get no more workspaces.
	Draining(ctx context.Context) ([]string, error)
}
