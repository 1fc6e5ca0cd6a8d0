package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// TakeOver implements store.Store.
func (s *Store) TakeOver(ctx context.Context, ref store.Ref, claim int64, owner store.Owner, ttl time.Duration) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := fence(ctx, tx, ref); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, `
			update calls set owner = $4, address = $5, claim = claim + 1, lease_until = clock_timestamp() + $6::interval
			where tenant = $1 and call_id = $2 and state = 'started' and claim = $3
				and (lease_until is null or lease_until <= clock_timestamp() or owner = $4)`,
			ref.Tenant, ref.CallID, claim, owner.ID, owner.Address, ttl)
		if err == nil && done.RowsAffected() == 0 {
			err = store.ErrConflict
		}
		return err
	})
	return failed(err, "take over call %s", ref.CallID)
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, owner string, ttl time.Duration, held []store.Held) ([]store.Held, error) {
	if len(held) == 0 {
		return nil, nil
	}
	n := len(held)
	tenants, ids, claims, begun := make([]string, n), make([]string, n), make([]int64, n), make([]bool, n)
	for i, h := range held {
		tenants[i], ids[i], claims[i], begun[i] = h.Tenant, h.CallID, h.Claim, h.Begun
	}
	rows, err := s.pool.Query(ctx, `
		with held as (
			select * from unnest($3::text[], $4::text[], $5::bigint[], $6::boolean[]) with ordinality as h(tenant, call_id, claim, begun, place)
		), renewed as (
			update calls c set lease_until = clock_timestamp() + $2::interval, begun = c.begun or h.begun
			from held h
			where c.tenant = h.tenant and c.call_id = h.call_id and c.claim = h.claim and c.owner = $1 and c.state = 'started'
			returning h.place
		)
		select h.place - 1 from held h where h.place not in (select place from renewed) order by 1`,
		owner, ttl, tenants, ids, claims, begun)
	if err != nil {
		return nil, failed(err, "renew the leases of %d calls", n)
	}
	places, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, failed(err, "renew the leases of %d calls", n)
	}
	lost := make([]store.Held, len(places))
	for i, p := range places {
		lost[i] = held[p]
	}
	return lost, nil
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, owner string) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update calls set lease_until = null where owner = $1 and state = 'started'`, owner); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update operations set lease_until = null where owner = $1 and state = 'running'`, owner)
		return err
	})
	return failed(err, "release what a replica holds")
}
