package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// A claim that took nothing because its rows were locked looks again after a
	// wait that grows between these two, at most that many times.
	firstLook, lastLook = 5 * time.Millisecond, 40 * time.Millisecond
	looks               = 15
)

// Claim implements store.Store. The longest-waiting session of each tenant
// comes before the second of any tenant. Rows that another transaction locks
// are skipped, and looked at again soon: that transaction may be a claim, or a
// change that wakes no claimer.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	wait := firstLook
	for look := 1; ; look++ {
		leases, skipped, err := s.claim(ctx, c)
		switch {
		case err != nil || skipped == nil || c.Limit > 0 && len(leases) >= c.Limit || look > looks:
			return leases, err
		case len(leases) > 0: // these need not wait for the skipped one
			s.db.wakes.Send(store.Wake{Key: *skipped, Kind: store.WakeInbox})
			return leases, nil
		}
		timer := time.NewTimer(wait)
		wait = min(2*wait, lastLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fail("claim sessions", ctx.Err())
		}
	}
}

// claim claims once. skipped is a session that could not be claimed because it
// was locked, if there is one.
func (s *Store) claim(ctx context.Context, c store.Claim) (leases []store.Lease, skipped *store.Key, err error) {
	tenants, sessions := splitKeys(c.Only)
	args := pgx.NamedArgs{"limit": limit(c.Limit), "holder": c.Replica, "ttl": c.TTL, "tenant_limit": c.TenantLimit, "suspect_at": c.SuspectAt, "suspects": c.Suspects, "depth": c.Depth}
	heldTenants, held := splitHeld(c)
	args["held_tenants"], args["held"] = heldTenants, held
	if len(c.Only) > 0 {
		args["tenants"], args["sessions"] = tenants, sessions
	}
	err = s.db.write(ctx, "claim sessions", func(tx pgx.Tx) (err error) {
		leases, err = collect(ctx, tx, func(r pgx.CollectableRow) (l store.Lease, err error) {
			return l, r.Scan(&l.Tenant, &l.Session, &l.Epoch, &l.Suspect, &l.FenceDue, &l.Claims)
		}, claimQuery(c), args)
		return err
	})
	if i := slices.IndexFunc(leases, func(l store.Lease) bool { return l.Epoch == 0 }); i >= 0 {
		skipped = &store.Key{Tenant: leases[i].Tenant, Session: leases[i].Session}
		leases = slices.Delete(leases, i, i+1)
	}
	return leases, skipped, err
}

// claimQuery returns the query that claims sessions. It also returns one
// skipped session, with the epoch 0, which no claim assigns.
func claimQuery(c store.Claim) string {
	// The ranking reads a snapshot, so the outer conditions are checked again
	// on the locked rows.
	return `
		with free as (
			select tenant, session, ready_time, @suspect_at > 0 and claims >= @suspect_at as suspect,
				row_number() over (partition by @suspect_at > 0 and claims >= @suspect_at order by ready_time, session) as nth
			from sessions s where runnable and depth = @depth and ` + free + only(c) + `
		), ranked as (
			select tenant, session, suspect, row_number() over (partition by tenant order by ready_time, session) as place,
				coalesce((select n from unnest(@held_tenants::text[], @held::bigint[]) as h (tenant, n) where h.tenant = s.tenant), 0) as held
			from free s where not suspect or nth <= @suspects
		), picked as (
			select s.tenant, s.session, r.suspect from sessions s join ranked r using (tenant, session)
			where s.runnable and ` + free + `
				and (@tenant_limit = 0 or r.place + r.held <= @tenant_limit)
			order by r.place, s.ready_time, s.tenant, s.session
			limit @limit
			for no key update of s skip locked
		), claimed as (
			update sessions s set epoch = s.epoch + 1, claims = s.claims + 1, holder = @holder,
				lease_until = clock_timestamp() + @ttl::interval, passed_to = '', passed_until = null,
				fence_due = s.fence_due or s.lease_until is not null
			from picked p where s.tenant = p.tenant and s.session = p.session
			returning s.tenant, s.session, s.epoch, p.suspect, s.fence_due, s.claims
		), skipped as (
			select tenant, session, 0::bigint, suspect, false, 0 from ranked r
			where (@tenant_limit = 0 or r.place + r.held <= @tenant_limit)
				and not exists (select 1 from picked p where p.tenant = r.tenant and p.session = r.session)
			limit 1
		)
		select * from claimed union all select * from skipped`
}

// free is the condition that a session can be claimed by the claimer.
const free = "(s.lease_until is null or s.lease_until <= clock_timestamp()) and (s.passed_until is null or s.passed_to = @holder or s.passed_until <= clock_timestamp())"

// only returns the condition that restricts a claim to the sessions that it
// names.
func only(c store.Claim) string {
	if len(c.Only) == 0 {
		return ""
	}
	return " and (tenant, session) in (select * from unnest(@tenants::text[], @sessions::text[]))"
}

// splitHeld returns how many sessions of each tenant the claimer holds, if that
// matters.
func splitHeld(c store.Claim) (tenants []string, held []int64) {
	if c.TenantLimit > 0 {
		for tenant, n := range c.Held {
			tenants, held = append(tenants, tenant), append(held, int64(n))
		}
	}
	return tenants, held
}

func splitKeys(keys []store.Key) (tenants, sessions []string) {
	for _, k := range keys {
		tenants, sessions = append(tenants, k.Tenant), append(sessions, k.Session)
	}
	return tenants, sessions
}
