package store

import (
	"context"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// MaxTriggers bounds the triggers of one user.
const MaxTriggers = 100

// NewTrigger describes a trigger to be created.
type NewTrigger struct {
	Owner
	ID      string // not that of any tenant's trigger
	Trigger *sessionv1.Trigger
	Secret  []byte
	Request Request
}

// RotateTrigger is a new secret for a trigger.
type RotateTrigger struct {
	Tenant, ID string
	Secret     []byte
	// Overlap is how long the old secret is good beside the new one; 0: it ends at once.
	Overlap time.Duration
	Request Request
}

// TriggerRow is a trigger with its secret.
type TriggerRow struct {
	Owner
	ID      string
	Trigger *sessionv1.Trigger
	Secret  []byte
	// OldSecret is good, too, until OldUntil. Both are zero if there is none.
	OldSecret []byte
	OldUntil  time.Time
	// Now is the database's time.
	Now time.Time
}

// TriggerFired is the result of a delivery.
type TriggerFired struct {
	Tenant, ID string
	// Turn is the name of the turn; empty leaves the last one.
	Turn string
	// Error says why there is no turn.
	Error string
}

// TriggerPage selects a page of triggers, by id.
type TriggerPage struct {
	Tenant, User string // User empty: of all users
	After        string // an id
	Limit        int
}

// Triggers stores triggers. Those of a session go with it. Those of a user are paused when the user is disabled.
type Triggers interface {
	// CreateTrigger creates a trigger. ErrNotFound without the session that it is for, ErrTooMany,
	// ErrRequestIDReused.
	CreateTrigger(ctx context.Context, n NewTrigger) (Answer, error)
	// FindTrigger reads a trigger of any tenant, or ErrNotFound. A delivery does not name its tenant.
	FindTrigger(ctx context.Context, id string) (*TriggerRow, error)
	// ListTriggers lists a page of triggers.
	ListTriggers(ctx context.Context, p TriggerPage) ([]*sessionv1.Trigger, error)
	// PauseTrigger stops a trigger or lets it go on. ErrNotFound, ErrRequestIDReused.
	PauseTrigger(ctx context.Context, tenant, id string, paused bool, r Request) (Answer, error)
	// RotateTrigger makes the current secret the old one, replacing an older one, and sets the new one.
	// ErrNotFound, ErrRequestIDReused.
	RotateTrigger(ctx context.Context, r RotateTrigger) (Answer, error)
	// DeleteTrigger deletes a trigger. ErrNotFound, ErrRequestIDReused.
	DeleteTrigger(ctx context.Context, tenant, id string, r Request) (Answer, error)
	// TriggerFired records the result of a delivery.
	TriggerFired(ctx context.Context, f TriggerFired) error
}
