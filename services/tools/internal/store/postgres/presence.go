package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

var _ store.Presence = (*Store)(nil)

// KeepPresent implements store.Presence. A call that another replica takes over is fenced by its claim.
func (s *Store) KeepPresent(ctx context.Context, replica string) {
	pg.Presence{Config: s.db.pool.Config().ConnConfig, Service: "tools", EndLeases: s.endLeases, Log: s.log}.Keep(ctx, replica)
}

// endLeases ends the leases of a dead replica on calls and operations. Rows that are locked are left to the next look.
func (s *Store) endLeases(ctx context.Context, tx pgx.Tx, dead string) error {
	var ended int64
	for _, statement := range []string{`
		with its as (
			select tenant, call_id from calls where state = 'started' and owner = $1 and lease_until > clock_timestamp()
			order by tenant, call_id for no key update skip locked
		)
		update calls c set lease_until = clock_timestamp() from its i where c.tenant = i.tenant and c.call_id = i.call_id`, `
		with its as (
			select tenant, id from operations where state = 'running' and owner = $1 and lease_until > clock_timestamp()
			order by tenant, id for no key update skip locked
		)
		update operations o set lease_until = clock_timestamp() from its i where o.tenant = i.tenant and o.id = i.id`,
	} {
		tag, err := tx.Exec(ctx, statement, dead)
		if err != nil {
			return err
		}
		ended += tag.RowsAffected()
	}
	if ended > 0 {
		s.log.WarnContext(ctx, "a replica is dead: its connection to the database has ended; its calls go on elsewhere", "replica", dead, "calls", ended)
	}
	return nil
}
