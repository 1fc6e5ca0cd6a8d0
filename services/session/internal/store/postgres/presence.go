package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

var _ store.Presence = (*Store)(nil)

// KeepPresent implements store.Presence. A session that another replica takes over is fenced by its epoch.
func (s *Store) KeepPresent(ctx context.Context, replica string) {
	pg.Presence{Config: s.listener.config, Service: "session", EndLeases: s.endLeases, Log: s.log}.Keep(ctx, replica)
}

// endLeases ends the leases of a dead replica on sessions with work, and wakes all replicas. Rows that are locked are
// left to the next look.
func (s *Store) endLeases(ctx context.Context, tx pgx.Tx, dead string) error {
	ended, err := collect(ctx, tx, func(r pgx.CollectableRow) (w store.Wake, err error) {
		w.Kind = store.WakeInbox
		return w, r.Scan(&w.Tenant, &w.Session)
	}, `
		with its as (
			select tenant, session from sessions where runnable and holder = $1 and lease_until > clock_timestamp()
			order by tenant, session for no key update skip locked
		)
		update sessions s set lease_until = clock_timestamp() from its i where s.tenant = i.tenant and s.session = i.session
		returning s.tenant, s.session`, dead)
	if err != nil || len(ended) == 0 {
		return err
	}
	s.log.WarnContext(ctx, "a replica is dead: its connection to the database has ended; its sessions go on elsewhere", "replica", dead, "sessions", len(ended))
	b := &pgx.Batch{}
	queueNotify(b, ended...)
	return tx.SendBatch(ctx, b).Close()
}
