package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// insertDeliveries inserts a delivery and a job for each webhook that matches an
// ended turn.
func insertDeliveries(ctx context.Context, tx *sql.Tx, turns []plan.Turn, now time.Time) error {
	var ended []plan.Turn
	for _, t := range turns {
		if plan.Ended(t.State) {
			ended = append(ended, t)
		}
	}
	// The jobs come first: an existing delivery already had its job.
	if err := each(ctx, tx, `
		insert into jobs (tenant, kind, job, session, due)
		select ?1, ?5, w.webhook || '_' || ?3, ?2, ?4 from webhooks w
		where w.tenant = ?1 and (w.session = '' or w.session = ?2)
			and not exists (select 1 from deliveries d where d.tenant = ?1 and d.delivery = w.webhook || '_' || ?3)
		on conflict do nothing`,
		ended, func(t plan.Turn) []any {
			return []any{t.Tenant, t.Session, t.ID, micros(now), string(store.JobWebhook)}
		}); err != nil {
		return err
	}
	return each(ctx, tx, `
		insert into deliveries (tenant, delivery, webhook, session, turn, create_time, next_time)
		select ?1, webhook || '_' || ?3, webhook, ?2, ?3, ?4, ?4 from webhooks
		where tenant = ?1 and (session = '' or session = ?2)
		on conflict do nothing`,
		ended, func(t plan.Turn) []any { return []any{t.Tenant, t.Session, t.ID, micros(now)} })
}
