package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// insertDeliveries inserts a delivery and a job for each webhook that matches an
// ended turn.
func insertDeliveries(ctx context.Context, tx *sql.Tx, turns []backend.Turn, now time.Time) error {
	var ended []backend.Turn
	for _, t := range turns {
		if backend.Ended(t.State) {
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
		ended, func(t backend.Turn) []any {
			return []any{t.Tenant, t.Session, t.ID, micros(now), string(store.JobWebhook)}
		}); err != nil {
		return err
	}
	return each(ctx, tx, `
		insert into deliveries (tenant, delivery, webhook, session, turn, create_time, next_time)
		select ?1, webhook || '_' || ?3, webhook, ?2, ?3, ?4, ?4 from webhooks
		where tenant = ?1 and (session = '' or session = ?2)
		on conflict do nothing`,
		ended, func(t backend.Turn) []any { return []any{t.Tenant, t.Session, t.ID, micros(now)} })
}

const webhookColumns = "w.tenant, w.webhook, w.session, w.url, w.secret, w.create_time, w.old_secret, w.old_until"

// webhookScan receives the columns of a webhook.
type webhookScan struct {
	row     backend.Webhook
	created int64
	until   *int64
}

func (w *webhookScan) fields() []any {
	return []any{&w.row.Tenant, &w.row.ID, &w.row.Session, &w.row.URL, &w.row.Secret, &w.created, &w.row.OldSecret, &w.until}
}

func (w *webhookScan) result() *store.WebhookRow {
	w.row.CreateTime, w.row.OldUntil = fromMicros(w.created), timeOrNil(w.until)
	return w.row.Row()
}

func scanWebhook(r *sql.Rows) (*store.WebhookRow, error) {
	w := &webhookScan{}
	if err := r.Scan(w.fields()...); err != nil {
		return nil, err
	}
	return w.result(), nil
}

// changeWebhooks runs f, unless the request was answered before.
func (s *Store) changeWebhooks(ctx context.Context, what, tenant string, r store.Request, id string,
	f func(tx *sql.Tx, now time.Time) error,
) (store.Answer, error) {
	answer := store.Answer{Value: id}
	err := s.write(ctx, what, func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		if old, err := recall(ctx, tx, tenant, r, now); err != nil || old != nil {
			return nil, replay(&answer, old, err)
		}
		if err := remember(ctx, tx, tenant, "", r, id, now); err != nil {
			return nil, err
		}
		return nil, f(tx, now)
	})
	return backend.Answered(answer, err)
}

// CreateWebhook implements store.Store.
func (s *Store) CreateWebhook(ctx context.Context, n store.NewWebhook) (store.Answer, error) {
	return s.changeWebhooks(ctx, "create webhook", n.Tenant, n.Request, n.ID, func(tx *sql.Tx, now time.Time) error {
		session := strings.TrimPrefix(n.Webhook.GetSession(), "sessions/")
		if session != "" {
			if _, err := sessionRow(ctx, tx, store.Key{Tenant: n.Tenant, Session: session}); err != nil {
				return err
			}
		}
		w := backend.PlanWebhook(n, session, now)
		made, err := affected(tx.ExecContext(ctx, `
			insert into webhooks (tenant, webhook, session, url, secret, create_time) values (?, ?, ?, ?, ?, ?) on conflict do nothing`,
			w.Tenant, w.ID, w.Session, w.URL, w.Secret, micros(w.CreateTime)))
		if err != nil {
			return err
		}
		if made == 0 {
			return store.ErrExists
		}
		var count int
		if err := tx.QueryRowContext(ctx, "select count(*) from webhooks where tenant = ?", n.Tenant).Scan(&count); err != nil {
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
	w, err := one(collect(ctx, s.db.R, scanWebhook, "select "+webhookColumns+" from webhooks w where tenant = ? and webhook = ?", tenant, id))
	return w, s.fail("get webhook", err)
}

// ListWebhooks implements store.Store.
func (s *Store) ListWebhooks(ctx context.Context, tenant, after string, n int) ([]*sessionv1.Webhook, error) {
	out, err := collect(ctx, s.db.R, func(r *sql.Rows) (*sessionv1.Webhook, error) {
		w, err := scanWebhook(r)
		if err != nil {
			return nil, err
		}
		return w.Webhook, nil
	}, "select "+webhookColumns+" from webhooks w where tenant = ? and webhook > ? order by webhook limit ?", tenant, after, limit(n))
	return out, s.fail("list webhooks", err)
}

// RotateWebhook implements store.Store.
func (s *Store) RotateWebhook(ctx context.Context, r store.RotateWebhook) (store.Answer, error) {
	return s.changeWebhooks(ctx, "rotate webhook", r.Tenant, r.Request, r.ID, func(tx *sql.Tx, now time.Time) error {
		until := backend.OldUntil(r, now)
		changed, err := affected(tx.ExecContext(ctx, `
			update webhooks set secret = ?3, old_secret = case when ?4 is null then null else secret end, old_until = ?4
			where tenant = ?1 and webhook = ?2`, r.Tenant, r.ID, r.Secret, microsOrNull(until)))
		if err == nil && changed == 0 {
			err = store.ErrNotFound
		}
		return err
	})
}

// DeleteWebhook implements store.Store.
func (s *Store) DeleteWebhook(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return s.changeWebhooks(ctx, "delete webhook", tenant, r, id, func(tx *sql.Tx, _ time.Time) error {
		n, err := affected(tx.ExecContext(ctx, "delete from webhooks where tenant = ? and webhook = ?", tenant, id))
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrNotFound
		}
		if _, err := tx.ExecContext(ctx, `
			delete from jobs where tenant = ?1 and kind = ?2 and job in (select delivery from deliveries where tenant = ?1 and webhook = ?3)`,
			tenant, string(store.JobWebhook), id); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "delete from deliveries where tenant = ? and webhook = ?", tenant, id)
		return err
	})
}

const deliveryColumns = `d.tenant, d.session, d.delivery, d.webhook, d.turn, d.state, d.last_error, d.attempts, d.last_status, d.create_time, d.next_time`

// deliveryScan receives the columns of a delivery.
type deliveryScan struct {
	row     backend.Delivery
	created int64
	next    *int64
}

func (d *deliveryScan) fields() []any {
	r := &d.row
	return []any{&r.Tenant, &r.Session, &r.ID, &r.Webhook, &r.TurnID, &r.State, &r.LastError, &r.Attempts, &r.LastStatus, &d.created, &d.next}
}

func (d *deliveryScan) result() *sessionv1.Delivery {
	d.row.CreateTime, d.row.NextTime = fromMicros(d.created), timeOrNil(d.next)
	return d.row.Proto()
}

// GetDelivery implements store.Store.
func (s *Store) GetDelivery(ctx context.Context, tenant, id string) (*store.DeliveryRow, error) {
	d, w := &deliveryScan{}, &webhookScan{}
	err := s.db.R.QueryRowContext(ctx, "select "+deliveryColumns+", "+webhookColumns+`
		from deliveries d join webhooks w on w.tenant = d.tenant and w.webhook = d.webhook
		where d.tenant = ? and d.delivery = ?`, tenant, id).Scan(append(d.fields(), w.fields()...)...)
	if err != nil {
		return nil, s.fail("get delivery", err)
	}
	return &store.DeliveryRow{WebhookRow: *w.result(), Key: d.row.Key, TurnID: d.row.TurnID, Delivery: d.result(), Now: s.clock()}, nil
}

// ListDeliveries implements store.Store.
func (s *Store) ListDeliveries(ctx context.Context, tenant, webhook, after string, n int) ([]*sessionv1.Delivery, error) {
	var out []*sessionv1.Delivery
	err := s.read(ctx, "list deliveries", func(tx *sql.Tx) error {
		var found int
		if err := tx.QueryRowContext(ctx, "select 1 from webhooks where tenant = ? and webhook = ?", tenant, webhook).Scan(&found); err != nil {
			return err
		}
		var behind *int64
		if after != "" {
			if err := tx.QueryRowContext(ctx, "select create_time from deliveries where tenant = ? and delivery = ?", tenant, after).Scan(&behind); err != nil {
				return err
			}
		}
		var err error
		out, err = collect(ctx, tx, func(r *sql.Rows) (*sessionv1.Delivery, error) {
			d := &deliveryScan{}
			err := r.Scan(d.fields()...)
			return d.result(), err
		}, "select "+deliveryColumns+` from deliveries d where tenant = ?1 and webhook = ?2
			and (state = ?6 or create_time >= ?7)
			and (?3 is null or (create_time, delivery) < (?3, ?4))
			order by create_time desc, delivery desc limit ?5`,
			tenant, webhook, behind, after, limit(n), store.DeliveryPending, micros(s.clock().Add(-store.KeepDeliveries)))
		return err
	})
	return out, err
}

// Delivered implements store.Store.
func (s *Store) Delivered(ctx context.Context, d store.Delivered) error {
	return s.write(ctx, "note a delivery", func(tx *sql.Tx) ([]store.Wake, error) {
		if _, err := tx.ExecContext(ctx, `
			update deliveries set state = ?, attempts = ?, last_error = ?, last_status = ?, next_time = ?
			where tenant = ? and delivery = ?`,
			d.State, d.Attempts, backend.TextColumn(d.LastError), d.LastStatus, microsOrNull(&d.Next), d.Tenant, d.ID); err != nil {
			return nil, err
		}
		_, err := tx.ExecContext(ctx, `
			delete from deliveries where (tenant, delivery) in (
				select tenant, delivery from deliveries where tenant = ? and state <> ? and create_time < ? limit ?)`,
			d.Tenant, store.DeliveryPending, micros(s.clock().Add(-store.KeepDeliveries)), backend.ForgetBatch)
		return nil, err
	})
}
