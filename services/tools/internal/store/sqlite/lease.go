package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// TakeOver implements store.Store.
func (s *Store) TakeOver(ctx context.Context, ref store.Ref, claim int64, owner store.Owner, ttl time.Duration) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := fence(ctx, tx, ref); err != nil {
			return err
		}
		return changed(tx.ExecContext(ctx, `
			update calls set owner = @owner, address = @address, claim = claim + 1, lease_until = `+now+` + @ttl
			where tenant = @tenant and call_id = @call and state = 'started' and claim = @claim and (lease_until <= `+now+` or owner = @owner)`,
			sql.Named("owner", owner.ID), sql.Named("address", owner.Address), sql.Named("ttl", ttl.Microseconds()),
			sql.Named("tenant", ref.Tenant), sql.Named("call", ref.CallID), sql.Named("claim", claim)))
	})
	return failed(err, "take over call %s", ref.CallID)
}

// Renew implements store.Store: one transaction, as there is one writer.
func (s *Store) Renew(ctx context.Context, owner string, ttl time.Duration, held []store.Held) ([]store.Held, error) {
	if len(held) == 0 {
		return nil, nil
	}
	var lost []store.Held
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		lost = nil
		for _, h := range held {
			err := changed(tx.ExecContext(ctx, `
				update calls set lease_until = `+now+` + @ttl, begun = begun or @begun
				where tenant = @tenant and call_id = @call and claim = @claim and owner = @owner and state = 'started'`,
				sql.Named("ttl", ttl.Microseconds()), sql.Named("begun", h.Begun), sql.Named("tenant", h.Tenant),
				sql.Named("call", h.CallID), sql.Named("claim", h.Claim), sql.Named("owner", owner)))
			switch {
			case errors.Is(err, store.ErrConflict):
				lost = append(lost, h)
			case err != nil:
				return err
			}
		}
		return nil
	})
	return lost, failed(err, "renew the leases of %d calls", len(held))
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, owner string) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `update calls set lease_until = 0 where owner = ? and state = 'started'`, owner); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `update operations set lease_until = 0 where owner = ? and state = 'running'`, owner)
		return err
	})
	return failed(err, "release what a replica holds")
}
