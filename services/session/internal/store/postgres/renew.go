package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// waits is the interval, in statements of a renewal, at which one waits for
	// locked rows, for at most patience. The rows of a busy session are almost
	// always locked, so that skipping them would never renew it.
	waits    = 4
	patience = "250ms"
	// lockTimeout is Postgres' code for a lock that was not acquired in time.
	lockTimeout = "55P03"
)

// Renew implements store.Store. One statement renews all leases except those whose
// rows are locked at that moment: a commit or a fold of one session must not delay
// the renewal of all others. The next statement renews the remaining ones, and so
// on.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) (lost []store.Key, err error) {
	wait := firstLook
	for try := 1; len(leases) > 0; try++ {
		good, err := s.renew(ctx, leases, ttl, try%waits == 0)
		if err != nil {
			return lost, fail("renew leases", err)
		}
		left := leases[:0:0]
		for _, l := range leases {
			renewed, ok := good[store.Lease{Key: l.Key, Epoch: l.Epoch}]
			switch {
			case !ok:
				lost = append(lost, l.Key)
			case !renewed:
				left = append(left, l)
			}
		}
		if leases = left; len(leases) == 0 {
			break
		}
		timer := time.NewTimer(wait)
		wait = min(2*wait, lastLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return lost, fail("renew leases", ctx.Err())
		}
	}
	return lost, nil
}

// renew returns the valid leases, each with whether it was renewed or skipped. It locks
// the rows in the order of their keys, so that it cannot deadlock with others that lock
// several of them in that order.
//
// The commit is not synced, because the renewal would hold its locks during the sync.
// Losing it loses only time: after a crash of the database the leases end earlier, and
// the epochs still keep two holders apart.
func (s *Store) renew(ctx context.Context, leases []store.Lease, ttl time.Duration, waiting bool) (good map[store.Lease]bool, err error) {
	var tenants, sessions []string
	var epochs []int64
	for _, l := range leases {
		tenants, sessions, epochs = append(tenants, l.Tenant), append(sessions, l.Session), append(epochs, l.Epoch)
	}
	passing := " skip locked"
	if waiting {
		passing = ""
	}
	err = pg.Retry(ctx, func() error {
		good = make(map[store.Lease]bool, len(leases))
		_, err := collect(ctx, s.db.pool, func(r pgx.CollectableRow) (l store.Lease, err error) {
			var renewed bool
			err = r.Scan(&l.Tenant, &l.Session, &l.Epoch, &renewed)
			good[l] = renewed
			return l, err
		}, `
			with asked as (
				select a.* from unnest($1::text[], $2::text[], $3::bigint[]) as a (tenant, session, epoch),
					set_config('synchronous_commit', 'off', true) as unsynced, set_config('lock_timeout', $5, true) as patience
			), mine as (
				select s.tenant, s.session from sessions s join asked a using (tenant, session)
				where s.epoch = a.epoch and s.lease_until is not null
				order by s.tenant, s.session
				for no key update of s`+passing+`
			), renewed as (
				update sessions s set lease_until = clock_timestamp() + $4::interval
				from mine m where s.tenant = m.tenant and s.session = m.session
				returning s.tenant, s.session
			)
			select s.tenant, s.session, s.epoch, (s.tenant, s.session) in (select tenant, session from renewed)
			from sessions s join asked a using (tenant, session)
			where s.epoch = a.epoch and s.lease_until is not null`,
			tenants, sessions, epochs, ttl, patience)
		return err
	})
	var pgErr *pgconn.PgError
	if waiting && errors.As(err, &pgErr) && pgErr.Code == lockTimeout { // nothing was renewed
		good = make(map[store.Lease]bool, len(leases))
		for _, l := range leases {
			good[store.Lease{Key: l.Key, Epoch: l.Epoch}] = false
		}
		return good, nil
	}
	return good, err
}
