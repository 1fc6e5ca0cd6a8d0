package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// queueDeliveries inserts a delivery and a job for each webhook that matches an
// ended turn. It prevents the deletion of these webhooks meanwhile, so that a
// later deletion finds the new rows.
func queueDeliveries(b *pgx.Batch, turns []plan.Turn) {
	var tenants, sessions, ids []string
	for _, t := range turns {
		if plan.Ended(t.State) {
			tenants, sessions, ids = append(tenants, t.Tenant), append(sessions, t.Session), append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	b.Queue(`
		with made as (
			insert into deliveries (tenant, delivery, webhook, session, turn, create_time, next_time)
			select t.tenant, w.webhook || '_' || t.turn, w.webhook, t.session, t.turn, clock_timestamp(), clock_timestamp()
			from unnest($1::text[], $2::text[], $3::text[]) as t (tenant, session, turn)
			join webhooks w on w.tenant = t.tenant and (w.session = '' or w.session = t.session)
			for key share of w
			on conflict do nothing
			returning tenant, delivery, session, create_time
		)
		insert into jobs (tenant, kind, job, session, due)
		select tenant, $4, delivery, session, create_time from made on conflict do nothing`,
		tenants, sessions, ids, store.JobWebhook)
}
