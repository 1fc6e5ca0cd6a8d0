package tables

import (
	"context"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type schedules struct{ db DB }

const scheduleColumns = "tenant, session, schedule, user_name, body, create_time, paused, due, last_turn, last_error"

func scheduleFields(r *plan.Schedule) []any {
	return []any{&r.Tenant, &r.Session, &r.ID, &r.User, &r.Body, &r.CreateTime, &r.Paused, &r.Due, &r.LastTurn, &r.LastError}
}

// change runs f under the session's lock, unless the request was answered before.
func (t schedules) change(ctx context.Context, what string, k store.Key, r store.Request, id string, f func(tx Tx, now time.Time) error) (store.Answer, error) {
	return once(ctx, t.db, what, request{r, k.Tenant, k.Session, id}, func(tx Tx) error {
		return exists(ctx, tx, k, forChange)
	}, func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		return nil, f(tx, now)
	})
}

// CreateSchedule implements store.Store.
func (t schedules) CreateSchedule(ctx context.Context, n store.NewSchedule) (store.Answer, error) {
	return t.change(ctx, "create schedule", n.Key, n.Request, n.ID, func(tx Tx, now time.Time) error {
		row, err := plan.ForSchedule(n, now)
		if err != nil {
			return err
		}
		jobs := row.Start(n.Next, now)
		made, err := tx.Exec(ctx, `
			insert into schedules (tenant, session, schedule, user_name, body, create_time, due)
			values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
			row.Tenant, row.Session, row.ID, row.User, row.Body, row.CreateTime, row.Due)
		if err != nil {
			return err
		}
		if made == 0 {
			return store.ErrExists
		}
		var count int
		if err := tx.QueryRow(ctx, "select count(*) from schedules where tenant = $1 and session = $2", row.Tenant, row.Session).Scan(&count); err != nil {
			return err
		}
		if count > store.MaxSchedules {
			return store.ErrTooMany
		}
		return tx.Insert(ctx, Rows{Jobs: jobs})
	})
}

// GetSchedule implements store.Store.
func (t schedules) GetSchedule(ctx context.Context, k store.Key, id string) (*store.ScheduleRow, error) {
	var now time.Time
	r := &plan.Schedule{}
	err := t.db.Reader().QueryRow(ctx, "select "+scheduleColumns+", clock_timestamp() from schedules where tenant = $1 and session = $2 and schedule = $3",
		k.Tenant, k.Session, id).Scan(append(scheduleFields(r), &now)...)
	if err != nil {
		return nil, t.db.Fail("get schedule", err)
	}
	return r.Row(now)
}

// ListSchedules implements store.Store.
func (t schedules) ListSchedules(ctx context.Context, k store.Key, after string, n int) ([]*sessionv1.Schedule, error) {
	var out []*sessionv1.Schedule
	err := t.db.Read(ctx, "list schedules", func(q sqldb.Queryer) (err error) {
		if err := SessionExists(ctx, q, k); err != nil {
			return err
		}
		out, err = sqldb.Collect(ctx, q, func(r sqldb.Row) (*sessionv1.Schedule, error) {
			row := &plan.Schedule{}
			if err := r.Scan(scheduleFields(row)...); err != nil {
				return nil, err
			}
			return row.Proto()
		}, "select "+scheduleColumns+" from schedules where tenant = $1 and session = $2 and schedule > $3 order by schedule limit $4",
			k.Tenant, k.Session, after, sqldb.Limit(n))
		return err
	})
	return out, err
}

// PauseSchedule implements store.Store.
func (t schedules) PauseSchedule(ctx context.Context, p store.PauseSchedule) (store.Answer, error) {
	return t.change(ctx, "pause schedule", p.Key, p.Request, p.ID, func(tx Tx, now time.Time) error {
		row := &plan.Schedule{}
		err := tx.QueryRow(ctx, "select "+scheduleColumns+" from schedules where tenant = $1 and session = $2 and schedule = $3"+forChange,
			p.Tenant, p.Session, p.ID).Scan(scheduleFields(row)...)
		if err != nil || row.Paused == p.Paused {
			return err
		}
		var jobs []store.Job
		if p.Paused {
			row.Pause()
		} else {
			jobs = row.Start(p.Next, now)
		}
		if _, err := tx.Exec(ctx, "update schedules set paused = $4, due = $5 where tenant = $1 and session = $2 and schedule = $3",
			row.Tenant, row.Session, row.ID, row.Paused, row.Due); err != nil {
			return err
		}
		if err := dropJob(ctx, tx, store.ScheduleJob(p.Key, p.ID, now)); err != nil {
			return err
		}
		return tx.Insert(ctx, Rows{Jobs: jobs})
	})
}

// DeleteSchedule implements store.Store.
func (t schedules) DeleteSchedule(ctx context.Context, k store.Key, id string, r store.Request) (store.Answer, error) {
	return t.change(ctx, "delete schedule", k, r, id, func(tx Tx, now time.Time) error {
		if err := changed(tx.Exec(ctx, "delete from schedules where tenant = $1 and session = $2 and schedule = $3", k.Tenant, k.Session, id)); err != nil {
			return err
		}
		return dropJob(ctx, tx, store.ScheduleJob(k, id, now))
	})
}

// ScheduleFired implements store.Store.
func (t schedules) ScheduleFired(ctx context.Context, f store.ScheduleFired) error {
	_, err := t.db.Exec(ctx, "record the run of a schedule", `
		update schedules set due = $5, last_turn = coalesce(nullif($6, ''), last_turn), last_error = $7
		where tenant = $1 and session = $2 and schedule = $3 and due = $4`,
		f.Tenant, f.Session, f.ID, f.Due, sqldb.Null(f.Next), f.Turn, plan.TextColumn(f.Error))
	return err
}
