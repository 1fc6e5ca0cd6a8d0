package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// Claim implements store.Store. The longest-waiting session of each tenant
// comes before the second of any tenant.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	var leases []store.Lease
	err := s.db.Write(ctx, "claim sessions", func(tx tables.Tx) ([]store.Wake, error) {
		found, err := claimable(ctx, tx, c)
		if err != nil {
			return nil, err
		}
		for _, l := range plan.WithinLimits(found, c) {
			if err := tx.QueryRow(ctx, `
				update sessions set epoch = epoch + 1, claims = claims + 1, holder = $1, lease_until = clock_timestamp() + $2, passed_to = '', passed_until = null,
					fence_due = fence_due or lease_until is not null
				where tenant = $3 and session = $4 returning epoch, fence_due, claims`,
				c.Replica, c.TTL, l.Tenant, l.Session).Scan(&l.Epoch, &l.FenceDue, &l.Claims); err != nil {
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
func claimable(ctx context.Context, q sqldb.Queryer, c store.Claim) ([]store.Lease, error) {
	atMost := c.Limit
	if c.TenantLimit > 0 { // some of them may exceed the limit
		atMost = 0
	}
	only, args := "", []any{c.SuspectAt, c.Suspects, sqldb.Limit(atMost), c.Depth, c.Replica}
	for i, k := range c.Only {
		only += fmt.Sprintf(", ($%d, $%d)", len(args)+1, len(args)+2)
		if args = append(args, k.Tenant, k.Session); i == len(c.Only)-1 {
			only = " and (tenant, session) in (values " + only[2:] + ")"
		}
	}
	return sqldb.Collect(ctx, q, func(r sqldb.Row) (l store.Lease, err error) {
		return l, r.Scan(&l.Tenant, &l.Session, &l.Suspect)
	}, `
		with free as (
			select tenant, session, ready_time, $1 > 0 and claims >= $1 as suspect,
				row_number() over (partition by $1 > 0 and claims >= $1 order by ready_time, session) as nth
			from sessions where runnable = 1 and depth = $4 and (lease_until is null or lease_until <= clock_timestamp())
				and (passed_until is null or passed_to = $5 or passed_until <= clock_timestamp())`+only+`
		)
		select tenant, session, suspect from free where not suspect or nth <= $2
		order by row_number() over (partition by tenant order by ready_time, session), ready_time, tenant, session
		limit $3 + 0`, args...)
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
	err = s.db.Write(ctx, "renew leases", func(tx tables.Tx) ([]store.Wake, error) {
		return nil, tx.Query(ctx, func(r sqldb.Row) error {
			var l store.Lease
			err := r.Scan(&l.Tenant, &l.Session, &l.Epoch)
			renewed[l] = true
			return err
		}, `
			update sessions set lease_until = clock_timestamp() + $1
			from (select value ->> 0 as tenant, value ->> 1 as session, value ->> 2 as epoch from json_each($2)) as a
			where sessions.tenant = a.tenant and sessions.session = a.session and sessions.epoch = a.epoch and lease_until is not null
			returning sessions.tenant, sessions.session, sessions.epoch`,
			ttl, string(list))
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
