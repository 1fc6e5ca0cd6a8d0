package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// Claim implements store.Store. The longest-waiting session of each tenant
// comes before the second of any tenant.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	var leases []store.Lease
	err := s.db.write(ctx, "claim sessions", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.db.clock()
		found, err := claimable(ctx, tx, c, micros(now))
		if err != nil {
			return nil, err
		}
		for _, l := range backend.WithinLimits(found, c) {
			if err := tx.QueryRowContext(ctx, `
				update sessions set epoch = epoch + 1, claims = claims + 1, holder = ?, lease_until = ?,
					fence_due = fence_due or lease_until is not null
				where tenant = ? and session = ? returning epoch, fence_due, claims`,
				c.Replica, micros(now.Add(c.TTL)), l.Tenant, l.Session).Scan(&l.Epoch, &l.FenceDue, &l.Claims); err != nil {
				return nil, err
			}
			leases = append(leases, l)
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// claimable lists the sessions that may be claimed, as leases without an epoch.
func claimable(ctx context.Context, tx *sql.Tx, c store.Claim, now int64) ([]store.Lease, error) {
	atMost := c.Limit
	if c.TenantLimit > 0 { // some of them may exceed the limit
		atMost = 0
	}
	only, args := "", []any{now, c.SuspectAt, c.Suspects, limit(atMost)}
	for i, k := range c.Only {
		only += fmt.Sprintf(", (?%d, ?%d)", len(args)+1, len(args)+2)
		if args = append(args, k.Tenant, k.Session); i == len(c.Only)-1 {
			only = " and (tenant, session) in (values " + only[2:] + ")"
		}
	}
	return collect(ctx, tx, func(r *sql.Rows) (l store.Lease, err error) {
		return l, r.Scan(&l.Tenant, &l.Session, &l.Suspect)
	}, `
		with free as (
			select tenant, session, ready_time, ?2 > 0 and claims >= ?2 as suspect,
				row_number() over (partition by ?2 > 0 and claims >= ?2 order by ready_time, session) as nth
			from sessions where runnable = 1 and (lease_until is null or lease_until <= ?1)`+only+`
		)
		select tenant, session, suspect from free where not suspect or nth <= ?3
		order by row_number() over (partition by tenant order by ready_time, session), ready_time, tenant, session
		limit ?4`, args...)
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Key, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	asked := make([][3]any, 0, len(leases))
	for _, l := range leases {
		asked = append(asked, [3]any{l.Tenant, l.Session, l.Epoch})
	}
	list, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	renewed := make(map[store.Lease]bool, len(leases))
	err = s.db.write(ctx, "renew leases", func(tx *sql.Tx) ([]store.Wake, error) {
		_, err := collect(ctx, tx, func(r *sql.Rows) (l store.Lease, err error) {
			err = r.Scan(&l.Tenant, &l.Session, &l.Epoch)
			renewed[l] = true
			return l, err
		}, `
			update sessions set lease_until = ?
			from (select value ->> 0 as tenant, value ->> 1 as session, value ->> 2 as epoch from json_each(?)) as a
			where sessions.tenant = a.tenant and sessions.session = a.session and sessions.epoch = a.epoch and lease_until is not null
			returning sessions.tenant, sessions.session, sessions.epoch`,
			micros(s.db.clock().Add(ttl)), string(list))
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	var lost []store.Key
	for _, l := range leases {
		if !renewed[store.Lease{Key: l.Key, Epoch: l.Epoch}] {
			lost = append(lost, l.Key)
		}
	}
	return lost, nil
}
