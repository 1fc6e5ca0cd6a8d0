package faulty

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return do(ctx, s.injector, Claim, func() ([]store.Lease, error) { return s.inner.Claim(ctx, c) })
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, l store.Lease) (*store.Snapshot, error) {
	return do(ctx, s.injector, Load, func() (*store.Snapshot, error) { return s.inner.Load(ctx, l) })
}

// LoadTurn implements store.Store.
func (s *Store) LoadTurn(ctx context.Context, l store.Lease, id string) (*store.TurnRow, error) {
	return do(ctx, s.injector, LoadTurn, func() (*store.TurnRow, error) { return s.inner.LoadTurn(ctx, l, id) })
}

// Salvage implements store.Store.
func (s *Store) Salvage(ctx context.Context, l store.Lease) (*store.Salvage, error) {
	return do(ctx, s.injector, Salvage, func() (*store.Salvage, error) { return s.inner.Salvage(ctx, l) })
}

// Fenced implements store.Store.
func (s *Store) Fenced(ctx context.Context, l store.Lease) error {
	return just(ctx, s.injector, Fenced, func() error { return s.inner.Fenced(ctx, l) })
}

// Inbox implements store.Store.
func (s *Store) Inbox(ctx context.Context, l store.Lease) ([]store.Command, error) {
	return do(ctx, s.injector, Inbox, func() ([]store.Command, error) { return s.inner.Inbox(ctx, l) })
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes []store.Write) ([]error, error) {
	return do(ctx, s.injector, Commit, func() ([]error, error) { return s.inner.Commit(ctx, writes) })
}

// Balances implements store.Store.
func (s *Store) Balances(ctx context.Context, tenant string, bounds []store.Bound) ([]store.Balance, error) {
	return do(ctx, s.injector, Balances, func() ([]store.Balance, error) { return s.inner.Balances(ctx, tenant, bounds) })
}

// Spend implements store.Ledger.
func (s *Store) Spend(ctx context.Context, sp store.Spending) error {
	return just(ctx, s.injector, Spend, func() error { return s.inner.Spend(ctx, sp) })
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Key, error) {
	return do(ctx, s.injector, Renew, func() ([]store.Key, error) { return s.inner.Renew(ctx, leases, ttl) })
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	return just(ctx, s.injector, Release, func() error { return s.inner.Release(ctx, l) })
}

// PassOn implements store.Store.
func (s *Store) PassOn(ctx context.Context, l store.Lease, replica string, ttl time.Duration) error {
	return just(ctx, s.injector, PassOn, func() error { return s.inner.PassOn(ctx, l, replica, ttl) })
}

// ReleaseIdle implements store.Store.
func (s *Store) ReleaseIdle(ctx context.Context, l store.Lease) (bool, error) {
	return do(ctx, s.injector, ReleaseIdle, func() (bool, error) { return s.inner.ReleaseIdle(ctx, l) })
}
