package store

import (
	"context"
	"errors"
	"time"
)

// ErrReplaced means that another process runs under a member's name.
var ErrReplaced = errors.New("another server runs under this server's name")

// Member is a server that holds workspaces on its own disk and shares the store with
// others.
type Member struct {
	Name     string
	Address  string // where the others reach it; empty: it was stopped
	Instance string // of its process
	// Silent is the time since its last beat, by the store's clock.
	Silent time.Duration
}

// Members is what a store has besides that several servers can share.
type Members interface {
	// Enlist makes a process the one that runs under a member's name. It forgets
	// members that have been silent for a day and hold no workspace.
	Enlist(ctx context.Context, m Member) error
	// Beat notes that the member runs, and where. ErrReplaced when another process
	// was enlisted under its name.
	Beat(ctx context.Context, m Member) error
	// Members lists the members in the order of their names.
	Members(ctx context.Context) ([]Member, error)
}
