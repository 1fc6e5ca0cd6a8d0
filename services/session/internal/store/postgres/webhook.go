package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// queueDeliveries inserts a delivery and a job for each webhook that matches an
// ended turn. It prevents the deletion of these webhooks meanwhile, so that a
// later deletion finds the new rows.
func queueDeliveries(b *pgx.Batch, turns []backend.Turn) {
	var tenants, sessions, ids []string
	for _, t := range turns {
		if backend.Ended(t.State) {
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

const webhookColumns = "w.tenant, w.webhook, w.session, w.url, w.secret, w.create_time, w.old_secret, w.old_until"

func webhookFields(w *backend.Webhook) []any {
	return []any{&w.Tenant, &w.ID, &w.Session, &w.URL, &w.Secret, &w.CreateTime, &w.OldSecret, &w.OldUntil}
}

func scanWebhook(row pgx.CollectableRow) (*backend.Webhook, error) {
	w := &backend.Webhook{}
	return w, row.Scan(webhookFields(w)...)
}

// changeWebhooks runs f alone among the changes of the tenant's webhooks, unless
// the request was answered before.
func (s *Store) changeWebhooks(ctx context.Context, what, tenant string, r store.Request, id string,
	f func(tx pgx.Tx, now time.Time) error,
) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, what, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended('webhooks of ' || $1, 0))", tenant); err != nil {
			return err
		}
		var err error
		if answer, err = remember(ctx, tx, tenant, "", r, id); err != nil || answer.Replayed {
			return err
		}
		now, err := dbNow(ctx, tx)
		if err != nil {
			return err
		}
		return f(tx, now)
	})
	return backend.Answered(answer, err)
}

// CreateWebhook implements store.Store.
func (s *Store) CreateWebhook(ctx context.Context, n store.NewWebhook) (store.Answer, error) {
	return s.changeWebhooks(ctx, "create webhook", n.Tenant, n.Request, n.ID, func(tx pgx.Tx, now time.Time) error {
		session := strings.TrimPrefix(n.Webhook.GetSession(), "sessions/")
		if session != "" {
			if _, err := sessionRow(ctx, tx, store.Key{Tenant: n.Tenant, Session: session}, forUpdate); err != nil {
				return err
			}
		}
		w := backend.PlanWebhook(n, session, now)
		tag, err := tx.Exec(ctx, `
			insert into webhooks (tenant, webhook, session, url, secret, create_time) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
			w.Tenant, w.ID, w.Session, w.URL, w.Secret, w.CreateTime)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return store.ErrExists
		}
		var count int
		if err := tx.QueryRow(ctx, "select count(*) from webhooks where tenant = $1", n.Tenant).Scan(&count); err != nil {
			return err
		}
		if count > store.MaxWebhooks {
			return store.ErrTooMany
		}
		return nil
	})
}

// GetWebhook implements store.Store.
func (s *Store) GetWebhook(ctx context.Context, tenant, id string) (*store.WebhookRow, error) {
	w := &backend.Webhook{}
	err := s.pool.QueryRow(ctx, "select "+webhookColumns+" from webhooks w where tenant = $1 and webhook = $2", tenant, id).Scan(webhookFields(w)...)
	if err != nil {
		return nil, fail("get webhook", err)
	}
	return w.Row(), nil
}

// ListWebhooks implements store.Store.
func (s *Store) ListWebhooks(ctx context.Context, tenant, after string, n int) ([]*sessionv1.Webhook, error) {
	out, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (*sessionv1.Webhook, error) {
		w, err := scanWebhook(r)
		return w.Row().Webhook, err
	}, "select "+webhookColumns+" from webhooks w where tenant = $1 and webhook > $2 order by webhook limit $3", tenant, after, limit(n))
	return out, fail("list webhooks", err)
}

// RotateWebhook implements store.Store.
func (s *Store) RotateWebhook(ctx context.Context, r store.RotateWebhook) (store.Answer, error) {
	return s.changeWebhooks(ctx, "rotate webhook", r.Tenant, r.Request, r.ID, func(tx pgx.Tx, now time.Time) error {
		tag, err := tx.Exec(ctx, `
			update webhooks set secret = $3, old_secret = case when $4::timestamptz is null then null else secret end, old_until = $4
			where tenant = $1 and webhook = $2`, r.Tenant, r.ID, r.Secret, backend.OldUntil(r, now))
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrNotFound
		}
		return err
	})
}

// DeleteWebhook implements store.Store.
func (s *Store) DeleteWebhook(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return s.changeWebhooks(ctx, "delete webhook", tenant, r, id, func(tx pgx.Tx, _ time.Time) error {
		tag, err := tx.Exec(ctx, "delete from webhooks where tenant = $1 and webhook = $2", tenant, id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return store.ErrNotFound
		}
		return dropDeliveries(ctx, tx, tenant, id)
	})
}

// dropDeliveries deletes a webhook's deliveries and their jobs.
func dropDeliveries(ctx context.Context, tx pgx.Tx, tenant, webhook string) error {
	_, err := tx.Exec(ctx, `
		with gone as (delete from deliveries where tenant = $1 and webhook = $2 returning delivery)
		delete from jobs where tenant = $1 and kind = $3 and job in (select delivery from gone)`, tenant, webhook, store.JobWebhook)
	return err
}

const deliveryColumns = `d.tenant, d.session, d.delivery, d.webhook, d.turn, d.state, d.last_error, d.attempts, d.last_status, d.create_time, d.next_time`

func deliveryFields(d *backend.Delivery) []any {
	return []any{&d.Tenant, &d.Session, &d.ID, &d.Webhook, &d.TurnID, &d.State, &d.LastError, &d.Attempts, &d.LastStatus, &d.CreateTime, &d.NextTime}
}

// GetDelivery implements store.Store.
func (s *Store) GetDelivery(ctx context.Context, tenant, id string) (*store.DeliveryRow, error) {
	d, w, now := backend.Delivery{}, backend.Webhook{}, time.Time{}
	err := s.pool.QueryRow(ctx, "select "+deliveryColumns+", "+webhookColumns+`, clock_timestamp()
		from deliveries d join webhooks w on w.tenant = d.tenant and w.webhook = d.webhook
		where d.tenant = $1 and d.delivery = $2`, tenant, id).Scan(append(append(deliveryFields(&d), webhookFields(&w)...), &now)...)
	if err != nil {
		return nil, fail("get delivery", err)
	}
	return &store.DeliveryRow{WebhookRow: *w.Row(), Key: d.Key, TurnID: d.TurnID, Delivery: d.Proto(), Now: now.UTC()}, nil
}

// ListDeliveries implements store.Store.
func (s *Store) ListDeliveries(ctx context.Context, tenant, webhook, after string, n int) ([]*sessionv1.Delivery, error) {
	var out []*sessionv1.Delivery
	err := s.read(ctx, "list deliveries", func(tx pgx.Tx) error {
		var one int
		if err := tx.QueryRow(ctx, "select 1 from webhooks where tenant = $1 and webhook = $2", tenant, webhook).Scan(&one); err != nil {
			return err
		}
		var behind *time.Time
		if after != "" {
			if err := tx.QueryRow(ctx, "select create_time from deliveries where tenant = $1 and delivery = $2", tenant, after).Scan(&behind); err != nil {
				return err
			}
		}
		var err error
		out, err = collect(ctx, tx, func(r pgx.CollectableRow) (*sessionv1.Delivery, error) {
			d := backend.Delivery{}
			err := r.Scan(deliveryFields(&d)...)
			return d.Proto(), err
		}, "select "+deliveryColumns+` from deliveries d where tenant = $1 and webhook = $2
			and (state = $6 or create_time >= clock_timestamp() - $7::interval)
			and ($3::timestamptz is null or (create_time, delivery) < ($3, $4))
			order by create_time desc, delivery desc limit $5`,
			tenant, webhook, behind, after, limit(n), store.DeliveryPending, store.KeepDeliveries)
		return err
	})
	return out, err
}

// Delivered implements store.Store.
func (s *Store) Delivered(ctx context.Context, d store.Delivered) error {
	var next *time.Time
	if !d.Next.IsZero() {
		next = &d.Next
	}
	return s.write(ctx, "note a delivery", func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`
			update deliveries set state = $3, attempts = $4, last_error = $5, last_status = $6, next_time = $7
			where tenant = $1 and delivery = $2`,
			d.Tenant, d.ID, d.State, d.Attempts, backend.TextColumn(d.LastError), d.LastStatus, next)
		b.Queue(`
			delete from deliveries where ctid in (
				select ctid from deliveries where tenant = $1 and state <> $2 and create_time < clock_timestamp() - $3::interval
				limit $4 for update skip locked)`,
			d.Tenant, store.DeliveryPending, store.KeepDeliveries, backend.ForgetBatch)
		return tx.SendBatch(ctx, b).Close()
	})
}
