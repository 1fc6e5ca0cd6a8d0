package sqlite

import (
	"context"
	"database/sql"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

const scheduleColumns = "tenant, session, schedule, user_name, body, create_time, paused, due, last_turn, last_error"

func scanSchedule(row *sql.Rows) (*backend.Schedule, error) {
	r := &backend.Schedule{}
	var created int64
	var due *int64
	err := row.Scan(&r.Tenant, &r.Session, &r.ID, &r.User, &r.Body, &created, &r.Paused, &due, &r.LastTurn, &r.LastError)
	r.CreateTime, r.Due = fromMicros(created), timeOrNil(due)
	return r, err
}

// timeOrNil reads a nullable column.
func timeOrNil(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	t := fromMicros(*us)
	return &t
}

// microsOrNull returns null for no time.
func microsOrNull(t *time.Time) *int64 {
	if t == nil || t.IsZero() {
		return nil
	}
	us := micros(*t)
	return &us
}

// scheduleRow reads a schedule's row, or returns sql.ErrNoRows.
func scheduleRow(ctx context.Context, q queryer, k store.Key, id string) (*backend.Schedule, error) {
	return one(collect(ctx, q, scanSchedule, "select "+scheduleColumns+" from schedules where tenant = ? and session = ? and schedule = ?",
		k.Tenant, k.Session, id))
}

// one returns the only row of a query, or sql.ErrNoRows.
func one[T any](rows []T, err error) (T, error) {
	if err != nil || len(rows) == 0 {
		var none T
		if err == nil {
			err = sql.ErrNoRows
		}
		return none, err
	}
	return rows[0], nil
}

// changeSchedules runs f for an existing session, unless the request was
// answered before.
func (s *Store) changeSchedules(ctx context.Context, what string, k store.Key, r store.Request, id string,
	f func(tx *sql.Tx, now time.Time) error,
) (store.Answer, error) {
	answer := store.Answer{Value: id}
	err := s.write(ctx, what, func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		if _, err := sessionRow(ctx, tx, k); err != nil {
			return nil, err
		}
		if old, err := recall(ctx, tx, k.Tenant, r, now); err != nil || old != nil {
			return nil, replay(&answer, old, err)
		}
		if err := remember(ctx, tx, k.Tenant, k.Session, r, id, now); err != nil {
			return nil, err
		}
		return nil, f(tx, now)
	})
	return backend.Answered(answer, err)
}

// CreateSchedule implements store.Store.
func (s *Store) CreateSchedule(ctx context.Context, n store.NewSchedule) (store.Answer, error) {
	return s.changeSchedules(ctx, "create schedule", n.Key, n.Request, n.ID, func(tx *sql.Tx, now time.Time) error {
		row, err := backend.PlanSchedule(n, now)
		if err != nil {
			return err
		}
		jobs := row.Start(n.Next, now)
		made, err := affected(tx.ExecContext(ctx, `
			insert into schedules (tenant, session, schedule, user_name, body, create_time, due) values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
			row.Tenant, row.Session, row.ID, row.User, row.Body, micros(row.CreateTime), microsOrNull(row.Due)))
		if err != nil {
			return err
		}
		if made == 0 {
			return store.ErrExists
		}
		var n int
		if err := tx.QueryRowContext(ctx, "select count(*) from schedules where tenant = ? and session = ?", row.Tenant, row.Session).Scan(&n); err != nil {
			return err
		}
		if n > store.MaxSchedules {
			return store.ErrTooMany
		}
		return insertJobs(ctx, tx, jobs)
	})
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func dropJob(ctx context.Context, tx *sql.Tx, j store.Job) error {
	_, err := tx.ExecContext(ctx, "delete from jobs where tenant = ? and kind = ? and job = ?", j.Tenant, string(j.Kind), j.ID)
	return err
}

// GetSchedule implements store.Store.
func (s *Store) GetSchedule(ctx context.Context, k store.Key, id string) (*store.ScheduleRow, error) {
	row, err := scheduleRow(ctx, s.db.R, k, id)
	if err != nil {
		return nil, s.fail("get schedule", err)
	}
	return row.Row(s.clock())
}

// ListSchedules implements store.Store.
func (s *Store) ListSchedules(ctx context.Context, k store.Key, after string, n int) ([]*sessionv1.Schedule, error) {
	var out []*sessionv1.Schedule
	err := s.read(ctx, "list schedules", func(tx *sql.Tx) error {
		if _, err := sessionRow(ctx, tx, k); err != nil {
			return err
		}
		var err error
		out, err = collect(ctx, tx, func(r *sql.Rows) (*sessionv1.Schedule, error) {
			row, err := scanSchedule(r)
			if err != nil {
				return nil, err
			}
			return row.Proto()
		}, "select "+scheduleColumns+" from schedules where tenant = ? and session = ? and schedule > ? order by schedule limit ?",
			k.Tenant, k.Session, after, limit(n))
		return err
	})
	return out, err
}

// PauseSchedule implements store.Store.
func (s *Store) PauseSchedule(ctx context.Context, p store.PauseSchedule) (store.Answer, error) {
	return s.changeSchedules(ctx, "pause schedule", p.Key, p.Request, p.ID, func(tx *sql.Tx, now time.Time) error {
		row, err := scheduleRow(ctx, tx, p.Key, p.ID)
		if err != nil || row.Paused == p.Paused {
			return err
		}
		var jobs []store.Job
		if p.Paused {
			row.Pause()
		} else {
			jobs = row.Start(p.Next, now)
		}
		if _, err := tx.ExecContext(ctx, "update schedules set paused = ?, due = ? where tenant = ? and session = ? and schedule = ?",
			row.Paused, microsOrNull(row.Due), row.Tenant, row.Session, row.ID); err != nil {
			return err
		}
		if err := dropJob(ctx, tx, store.ScheduleJob(p.Key, p.ID, now)); err != nil {
			return err
		}
		return insertJobs(ctx, tx, jobs)
	})
}

// DeleteSchedule implements store.Store.
func (s *Store) DeleteSchedule(ctx context.Context, k store.Key, id string, r store.Request) (store.Answer, error) {
	return s.changeSchedules(ctx, "delete schedule", k, r, id, func(tx *sql.Tx, now time.Time) error {
		n, err := affected(tx.ExecContext(ctx, "delete from schedules where tenant = ? and session = ? and schedule = ?", k.Tenant, k.Session, id))
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrNotFound
		}
		return dropJob(ctx, tx, store.ScheduleJob(k, id, now))
	})
}

// ScheduleFired implements store.Store.
func (s *Store) ScheduleFired(ctx context.Context, f store.ScheduleFired) error {
	_, err := s.db.W.ExecContext(ctx, `
		update schedules set due = ?, last_turn = coalesce(nullif(?, ''), last_turn), last_error = ?
		where tenant = ? and session = ? and schedule = ? and due = ?`,
		microsOrNull(&f.Next), f.Turn, backend.TextColumn(f.Error), f.Tenant, f.Session, f.ID, micros(f.Due))
	return s.fail("note what a schedule did", err)
}
