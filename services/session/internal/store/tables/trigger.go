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

type triggers struct{ db DB }

const triggerColumns = "trigger_id, tenant, session, user_id, body, secret, old_secret, old_until, paused, create_time, last_time, last_turn, last_error"

func triggerFields(t *plan.Trigger) []any {
	return []any{
		&t.ID, &t.Tenant, &t.Session, &t.User, &t.Body, &t.Secret, &t.OldSecret, &t.OldUntil, &t.Paused, &t.CreateTime, &t.LastTime, &t.LastTurn, &t.LastError,
	}
}

// change runs f in a transaction, unless the request was answered before.
func (t triggers) change(ctx context.Context, what, tenant, id string, r store.Request, f func(tx Tx, now time.Time) error) (store.Answer, error) {
	return once(ctx, t.db, what, request{r, tenant, "", id}, nil, func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		return nil, f(tx, now)
	})
}

// CreateTrigger implements store.Triggers.
func (t triggers) CreateTrigger(ctx context.Context, n store.NewTrigger) (store.Answer, error) {
	return t.change(ctx, "create trigger", n.Tenant, n.ID, n.Request, func(tx Tx, now time.Time) error {
		if err := tx.Lock(ctx, "triggers of "+n.Tenant+"/"+n.User); err != nil {
			return err
		}
		session := strings.TrimPrefix(n.Trigger.GetSession(), "sessions/")
		if session != "" {
			if err := exists(ctx, tx, store.Key{Tenant: n.Tenant, Session: session}, forChange); err != nil {
				return err
			}
		}
		var count int
		if err := tx.QueryRow(ctx, "select count(*) from triggers where tenant = $1 and user_id = $2", n.Tenant, n.User).Scan(&count); err != nil {
			return err
		}
		if count >= store.MaxTriggers {
			return store.ErrTooMany
		}
		row, err := plan.ForTrigger(n, session, now)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "insert into triggers (trigger_id, tenant, session, user_id, body, secret, create_time) values ($1, $2, $3, $4, $5, $6, $7)",
			row.ID, row.Tenant, row.Session, row.User, row.Body, row.Secret, row.CreateTime)
		return err
	})
}

// FindTrigger implements store.Triggers.
func (t triggers) FindTrigger(ctx context.Context, id string) (*store.TriggerRow, error) {
	var now time.Time
	row := &plan.Trigger{}
	err := t.db.Reader().QueryRow(ctx, "select "+triggerColumns+", clock_timestamp() from triggers where trigger_id = $1", id).Scan(append(triggerFields(row), &now)...)
	if err != nil {
		return nil, t.db.Fail("find trigger", err)
	}
	return row.Row(now)
}

// ListTriggers implements store.Triggers.
func (t triggers) ListTriggers(ctx context.Context, p store.TriggerPage) ([]*sessionv1.Trigger, error) {
	q := filter("select "+triggerColumns+" from triggers where tenant = $1", p.Tenant)
	if p.User != "" {
		q.and("user_id = ?", p.User)
	}
	if p.After != "" {
		q.and("trigger_id > ?", p.After)
	}
	statement := q.ordered("trigger_id", p.Limit)
	out, err := sqldb.Collect(ctx, t.db.Reader(), func(r sqldb.Row) (*sessionv1.Trigger, error) {
		row := &plan.Trigger{}
		if err := r.Scan(triggerFields(row)...); err != nil {
			return nil, err
		}
		return row.Proto()
	}, statement, q.args...)
	return out, t.db.Fail("list triggers", err)
}

// PauseTrigger implements store.Triggers.
func (t triggers) PauseTrigger(ctx context.Context, tenant, id string, paused bool, r store.Request) (store.Answer, error) {
	return t.change(ctx, "pause trigger", tenant, id, r, func(tx Tx, _ time.Time) error {
		return changed(tx.Exec(ctx, "update triggers set paused = $3 where tenant = $1 and trigger_id = $2", tenant, id, paused))
	})
}

// RotateTrigger implements store.Triggers.
func (t triggers) RotateTrigger(ctx context.Context, r store.RotateTrigger) (store.Answer, error) {
	return t.change(ctx, "rotate trigger", r.Tenant, r.ID, r.Request, func(tx Tx, now time.Time) error {
		return changed(tx.Exec(ctx, `
			update triggers set secret = $3, old_secret = case when $4::timestamptz is null then null else secret end, old_until = $4
			where tenant = $1 and trigger_id = $2`, r.Tenant, r.ID, r.Secret, plan.OldUntil(r.Overlap, now)))
	})
}

// DeleteTrigger implements store.Triggers.
func (t triggers) DeleteTrigger(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return t.change(ctx, "delete trigger", tenant, id, r, func(tx Tx, _ time.Time) error {
		return changed(tx.Exec(ctx, "delete from triggers where tenant = $1 and trigger_id = $2", tenant, id))
	})
}

// TriggerFired implements store.Triggers.
func (t triggers) TriggerFired(ctx context.Context, f store.TriggerFired) error {
	_, err := t.db.Exec(ctx, "record a delivery", `
		update triggers set last_time = clock_timestamp(), last_turn = coalesce(nullif($3, ''), last_turn), last_error = $4
		where tenant = $1 and trigger_id = $2`,
		f.Tenant, f.ID, f.Turn, plan.TextColumn(f.Error))
	return err
}
