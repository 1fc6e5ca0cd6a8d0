package tables

import (
	"context"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type webhooks struct{ db DB }

const webhookColumns = "w.tenant, w.webhook, w.session, w.url, w.secret, w.create_time, w.old_secret, w.old_until"

func webhookFields(w *plan.Webhook) []any {
	return []any{&w.Tenant, &w.ID, &w.Session, &w.URL, &w.Secret, &w.CreateTime, &w.OldSecret, &w.OldUntil}
}

// change runs f alone among the changes of the tenant's webhooks, unless the request was answered before.
func (t webhooks) change(ctx context.Context, what, tenant string, r store.Request, id string, f func(tx Tx, now time.Time) error) (store.Answer, error) {
	return once(ctx, t.db, what, request{r, tenant, "", id}, func(tx Tx) error {
		return tx.Lock(ctx, "webhooks of "+tenant)
	}, func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		return nil, f(tx, now)
	})
}

// CreateWebhook implements store.Store.
func (t webhooks) CreateWebhook(ctx context.Context, n store.NewWebhook) (store.Answer, error) {
	return t.change(ctx, "create webhook", n.Tenant, n.Request, n.ID, func(tx Tx, now time.Time) error {
		session := strings.TrimPrefix(n.Webhook.GetSession(), "sessions/")
		if session != "" {
			if err := exists(ctx, tx, store.Key{Tenant: n.Tenant, Session: session}, forChange); err != nil {
				return err
			}
		}
		w := plan.ForWebhook(n, session, now)
		made, err := tx.Exec(ctx, `
			insert into webhooks (tenant, webhook, session, url, secret, create_time) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
			w.Tenant, w.ID, w.Session, w.URL, w.Secret, w.CreateTime)
		if err != nil {
			return err
		}
		if made == 0 {
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
func (t webhooks) GetWebhook(ctx context.Context, tenant, id string) (*store.WebhookRow, error) {
	w := &plan.Webhook{}
	err := t.db.Reader().QueryRow(ctx, "select "+webhookColumns+" from webhooks w where tenant = $1 and webhook = $2", tenant, id).Scan(webhookFields(w)...)
	if err != nil {
		return nil, t.db.Fail("get webhook", err)
	}
	return w.Row(), nil
}

// ListWebhooks implements store.Store.
func (t webhooks) ListWebhooks(ctx context.Context, tenant, after string, n int) ([]*sessionv1.Webhook, error) {
	out, err := sqldb.Collect(ctx, t.db.Reader(), func(r sqldb.Row) (*sessionv1.Webhook, error) {
		w := &plan.Webhook{}
		err := r.Scan(webhookFields(w)...)
		return w.Row().Webhook, err
	}, "select "+webhookColumns+" from webhooks w where tenant = $1 and webhook > $2 order by webhook limit $3", tenant, after, sqldb.Limit(n))
	return out, t.db.Fail("list webhooks", err)
}

// RotateWebhook implements store.Store.
func (t webhooks) RotateWebhook(ctx context.Context, r store.RotateWebhook) (store.Answer, error) {
	return t.change(ctx, "rotate webhook", r.Tenant, r.Request, r.ID, func(tx Tx, now time.Time) error {
		return changed(tx.Exec(ctx, `
			update webhooks set secret = $3, old_secret = case when $4::timestamptz is null then null else secret end, old_until = $4
			where tenant = $1 and webhook = $2`, r.Tenant, r.ID, r.Secret, plan.OldUntil(r.Overlap, now)))
	})
}

// DeleteWebhook implements store.Store.
func (t webhooks) DeleteWebhook(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return t.change(ctx, "delete webhook", tenant, r, id, func(tx Tx, _ time.Time) error {
		if err := changed(tx.Exec(ctx, "delete from webhooks where tenant = $1 and webhook = $2", tenant, id)); err != nil {
			return err
		}
		_, err := tx.Send(ctx, sqldb.S(`
			delete from jobs where tenant = $1 and kind = $3 and job in (select delivery from deliveries where tenant = $1 and webhook = $2)`,
			tenant, id, store.JobWebhook),
			sqldb.S("delete from deliveries where tenant = $1 and webhook = $2", tenant, id))
		return err
	})
}

const deliveryColumns = `d.tenant, d.session, d.delivery, d.webhook, d.turn, d.state, d.last_error, d.attempts, d.last_status, d.create_time, d.next_time`

func deliveryFields(d *plan.Delivery) []any {
	return []any{&d.Tenant, &d.Session, &d.ID, &d.Webhook, &d.TurnID, &d.State, &d.LastError, &d.Attempts, &d.LastStatus, &d.CreateTime, &d.NextTime}
}

// GetDelivery implements store.Store.
func (t webhooks) GetDelivery(ctx context.Context, tenant, id string) (*store.DeliveryRow, error) {
	d, w, now := plan.Delivery{}, plan.Webhook{}, time.Time{}
	err := t.db.Reader().QueryRow(ctx, "select "+deliveryColumns+", "+webhookColumns+`, clock_timestamp()
		from deliveries d join webhooks w on w.tenant = d.tenant and w.webhook = d.webhook
		where d.tenant = $1 and d.delivery = $2`, tenant, id).Scan(append(append(deliveryFields(&d), webhookFields(&w)...), &now)...)
	if err != nil {
		return nil, t.db.Fail("get delivery", err)
	}
	return &store.DeliveryRow{WebhookRow: *w.Row(), Key: d.Key, TurnID: d.TurnID, Delivery: d.Proto(), Now: now}, nil
}

// ListDeliveries implements store.Store.
func (t webhooks) ListDeliveries(ctx context.Context, tenant, webhook, after string, n int) ([]*sessionv1.Delivery, error) {
	var out []*sessionv1.Delivery
	err := t.db.Read(ctx, "list deliveries", func(q sqldb.Queryer) error {
		var one int
		if err := q.QueryRow(ctx, "select 1 from webhooks where tenant = $1 and webhook = $2", tenant, webhook).Scan(&one); err != nil {
			return err
		}
		var behind *time.Time
		if after != "" {
			if err := q.QueryRow(ctx, "select create_time from deliveries where tenant = $1 and delivery = $2", tenant, after).Scan(&behind); err != nil {
				return err
			}
		}
		var err error
		out, err = sqldb.Collect(ctx, q, func(r sqldb.Row) (*sessionv1.Delivery, error) {
			d := plan.Delivery{}
			err := r.Scan(deliveryFields(&d)...)
			return d.Proto(), err
		}, "select "+deliveryColumns+` from deliveries d where tenant = $1 and webhook = $2
			and (state = $6 or create_time >= clock_timestamp() - $7::interval)
			and ($3::timestamptz is null or (create_time, delivery) < ($3, $4))
			order by create_time desc, delivery desc limit $5`,
			tenant, webhook, behind, after, sqldb.Limit(n), store.DeliveryPending, store.KeepDeliveries)
		return err
	})
	return out, err
}

// Delivered implements store.Store.
func (t webhooks) Delivered(ctx context.Context, d store.Delivered) error {
	return t.db.Write(ctx, "note a delivery", func(tx Tx) ([]store.Wake, error) {
		_, err := tx.Send(ctx, sqldb.S(`
			update deliveries set state = $3, attempts = $4, last_error = $5, last_status = $6, next_time = $7
			where tenant = $1 and delivery = $2`,
			d.Tenant, d.ID, d.State, d.Attempts, plan.TextColumn(d.LastError), d.LastStatus, sqldb.Null(d.Next)),
			sqldb.S(`
			delete from deliveries where (tenant, delivery) in (
				select tenant, delivery from deliveries where tenant = $1 and state <> $2 and create_time < clock_timestamp() - $3::interval
				limit $4 for update skip locked)`,
				d.Tenant, store.DeliveryPending, store.KeepDeliveries, plan.ForgetBatch))
		return nil, err
	})
}
