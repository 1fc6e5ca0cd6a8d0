package store

import (
	"context"
	"errors"
	"time"
)

// ErrReplaced means that another process runs under a member's name.
var ErrReplaced = errors.New("another server runs under this server's name")

// Member is a server that has workspaces on its own disk and shares the store with
// other servers.
type Member struct {
	Name     string
	Address  string // address for the other servers; empty: it was stopped
	Instance string // of its process
	// Silent is the time since its last beat, by the store's clock.
	Silent time.Duration
	// Empty reports that it has no workspace.
	Empty bool
}

// Presence is the part of a store that several replicas share which knows at once that one of them has died.
type Presence interface {
	// KeepPresent shows until ctx ends that a replica lives, and ends the leases of those that died. A replica that
	// stops must release its leases before.
	KeepPresent(ctx context.Context, replica string)
}

// Members is the part of a store that several servers can share.
type Members interface {
	// Enlist makes a process the one that runs under a member's name. It removes
	// members that have been silent for a day and have no workspace.
	Enlist(ctx context.Context, m Member) error
	// Beat records that the member runs, and its address. ErrReplaced when another
	// process was enlisted under its name.
	Beat(ctx context.Context, m Member) error
	// Leave records that the member stops, and removes it when it has no workspace and no
	// copy of one. It leaves a process alone that was enlisted later.
	Leave(ctx context.Context, m Member) error
	// Members lists the members by name.
	Members(ctx context.Context) ([]Member, error)
	// InternalKey returns the seed of the members' internal tokens: the stored one, or
	// this one, which is stored, when there is none.
	InternalKey(ctx context.Context, fresh []byte) ([]byte, error)
}
