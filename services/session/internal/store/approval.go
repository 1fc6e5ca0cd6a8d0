package store

import (
	"context"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// PendingPage selects a page of what waits for people, the newest first.
type PendingPage struct {
	Tenant  string
	User    string // only in sessions of this user, by id; empty: all
	Session string // only in this session, by id; empty: all
	// After continues behind this call (create time, session, then call, all descending).
	AfterTime               time.Time
	AfterSession, AfterCall string
	Limit                   int
}

// Approvals reads what waits for people: the waiting calls with a Shown that have no answer.
type Approvals interface {
	// ListPending lists a page of it.
	ListPending(ctx context.Context, p PendingPage) ([]*sessionv1.PendingApproval, error)
	// GetPending reads what one call waits for; ErrCallNotWaiting also once it has an answer.
	GetPending(ctx context.Context, k Key, call string) (*sessionv1.PendingApproval, error)
}
