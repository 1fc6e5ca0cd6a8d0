package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

const scheduleColumns = "tenant, session, schedule, user_name, body, create_time, paused, due, last_turn, last_error"

func scanSchedule(row pgx.CollectableRow) (*backend.Schedule, error) {
	r := &backend.Schedule{}
	err := row.Scan(&r.Tenant, &r.Session, &r.ID, &r.User, &r.Body, &r.CreateTime, &r.Paused, &r.Due, &r.LastTurn, &r.LastError)
	return r, err
}

// scheduleRow reads a schedule's row, or returns pgx.ErrNoRows.
func scheduleRow(ctx context.Context, q queryer, k store.Key, id, lock string) (*backend.Schedule, error) {
	rows, err := q.Query(ctx, "select "+scheduleColumns+" from schedules where tenant = $1 and session = $2 and schedule = $3 "+lock, k.Tenant, k.Session, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(rows, scanSchedule)
}

// changeSchedules runs f under the session's lock, unless the request was
// answered before.
func (s *Store) changeSchedules(ctx context.Context, what string, k store.Key, r store.Request, id string,
	f func(tx pgx.Tx, now time.Time) error,
) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, what, func(tx pgx.Tx) error {
		if _, err := sessionRow(ctx, tx, k, forUpdate); err != nil {
			return err
		}
		var err error
		if answer, err = remember(ctx, tx, k.Tenant, k.Session, r, id); err != nil || answer.Replayed {
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

// CreateSchedule implements store.Store.
func (s *Store) CreateSchedule(ctx context.Context, n store.NewSchedule) (store.Answer, error) {
	return s.changeSchedules(ctx, "create schedule", n.Key, n.Request, n.ID, func(tx pgx.Tx, now time.Time) error {
		row, err := backend.PlanSchedule(n, now)
		if err != nil {
			return err
		}
		jobs := row.Start(n.Next, now)
		tag, err := tx.Exec(ctx, `
			insert into schedules (tenant, session, schedule, user_name, body, create_time, due)
			values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
			row.Tenant, row.Session, row.ID, row.User, row.Body, row.CreateTime, row.Due)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return store.ErrExists
		}
		var n int
		if err := tx.QueryRow(ctx, "select count(*) from schedules where tenant = $1 and session = $2", row.Tenant, row.Session).Scan(&n); err != nil {
			return err
		}
		if n > store.MaxSchedules {
			return store.ErrTooMany
		}
		return putJobs(ctx, tx, jobs)
	})
}

func putJobs(ctx context.Context, tx pgx.Tx, jobs []store.Job) error {
	b := &pgx.Batch{}
	queueJobs(b, jobs)
	return tx.SendBatch(ctx, b).Close()
}

func dropJob(ctx context.Context, tx pgx.Tx, j store.Job) error {
	_, err := tx.Exec(ctx, "delete from jobs where tenant = $1 and kind = $2 and job = $3", j.Tenant, j.Kind, j.ID)
	return err
}

// GetSchedule implements store.Store.
func (s *Store) GetSchedule(ctx context.Context, k store.Key, id string) (*store.ScheduleRow, error) {
	row, err := scheduleRow(ctx, s.pool, k, id, "")
	if err != nil {
		return nil, fail("get schedule", err)
	}
	now, err := dbNow(ctx, s.pool)
	if err != nil {
		return nil, fail("get schedule", err)
	}
	return row.Row(now)
}

// ListSchedules implements store.Store.
func (s *Store) ListSchedules(ctx context.Context, k store.Key, after string, n int) ([]*sessionv1.Schedule, error) {
	var out []*sessionv1.Schedule
	err := s.read(ctx, "list schedules", func(tx pgx.Tx) error {
		if err := sessionExists(ctx, tx, k); err != nil {
			return err
		}
		var err error
		out, err = collect(ctx, tx, func(r pgx.CollectableRow) (*sessionv1.Schedule, error) {
			row, err := scanSchedule(r)
			if err != nil {
				return nil, err
			}
			return row.Proto()
		}, "select "+scheduleColumns+" from schedules where tenant = $1 and session = $2 and schedule > $3 order by schedule limit $4",
			k.Tenant, k.Session, after, limit(n))
		return err
	})
	return out, err
}

// PauseSchedule implements store.Store.
func (s *Store) PauseSchedule(ctx context.Context, p store.PauseSchedule) (store.Answer, error) {
	return s.changeSchedules(ctx, "pause schedule", p.Key, p.Request, p.ID, func(tx pgx.Tx, now time.Time) error {
		row, err := scheduleRow(ctx, tx, p.Key, p.ID, forUpdate)
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
		return putJobs(ctx, tx, jobs)
	})
}

// DeleteSchedule implements store.Store.
func (s *Store) DeleteSchedule(ctx context.Context, k store.Key, id string, r store.Request) (store.Answer, error) {
	return s.changeSchedules(ctx, "delete schedule", k, r, id, func(tx pgx.Tx, now time.Time) error {
		tag, err := tx.Exec(ctx, "delete from schedules where tenant = $1 and session = $2 and schedule = $3", k.Tenant, k.Session, id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return store.ErrNotFound
		}
		return dropJob(ctx, tx, store.ScheduleJob(k, id, now))
	})
}

// ScheduleFired implements store.Store.
func (s *Store) ScheduleFired(ctx context.Context, f store.ScheduleFired) error {
	var next *time.Time
	if !f.Next.IsZero() {
		next = &f.Next
	}
	_, err := s.pool.Exec(ctx, `
		update schedules set due = $5, last_turn = coalesce(nullif($6, ''), last_turn), last_error = $7
		where tenant = $1 and session = $2 and schedule = $3 and due = $4`,
		f.Tenant, f.Session, f.ID, f.Due, next, f.Turn, backend.TextColumn(f.Error))
	return fail("note what a schedule did", err)
}
