package store

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// KeyTakenError says that another session of the user has the caller's key.
type KeyTakenError struct{ Session string } // its id

// Error says what happened.
func (*KeyTakenError) Error() string { return "another session has the key" }

// UpdateSession changes what the caller keeps with a session.
type UpdateSession struct {
	Key
	// Change changes the title, the labels and the metadata. It may be called more than
	// once; its error stops the update.
	Change  func(*sessionv1.Session) error
	Request Request
}

// ArchiveSession archives a session, or brings it back.
type ArchiveSession struct {
	Key
	Undo    bool
	Request Request
}

// SessionChanges changes sessions without their lease: nothing of it is in the log.
type SessionChanges interface {
	// UpdateSession changes a session. ErrNotFound, ErrRequestIDReused.
	UpdateSession(ctx context.Context, u UpdateSession) (Answer, error)
	// ArchiveSession archives a session: it takes no turns and no other work that a
	// caller asks for, and lists leave it out. Its caller's key is free then. With Undo
	// it is brought back: *KeyTakenError. ErrTurnActive when a turn is active or queued,
	// ErrNotFound, ErrRequestIDReused.
	ArchiveSession(ctx context.Context, a ArchiveSession) (Answer, error)
}
