package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// PutJobs implements store.Store.
func (s *Store) PutJobs(ctx context.Context, jobs []store.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	return s.write(ctx, "put jobs", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		rows := make([]store.Job, len(jobs))
		for i, j := range jobs {
			rows[i] = backend.JobAt(j, now)
		}
		return wokeJobs(nil, rows), insertJobs(ctx, tx, rows)
	})
}

// RequestJobs implements store.Store.
func (s *Store) RequestJobs(ctx context.Context, tenant string, jobs []store.Job, r store.Request) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, "request jobs", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		if old, err := recall(ctx, tx, tenant, r, now); err != nil || old != nil {
			return nil, replay(&answer, old, err)
		}
		if err := remember(ctx, tx, tenant, "", r, "", now); err != nil {
			return nil, err
		}
		rows := make([]store.Job, len(jobs))
		for i, j := range jobs {
			rows[i] = backend.JobAt(j, now)
		}
		return wokeJobs(nil, rows), insertJobs(ctx, tx, rows)
	})
	return backend.Answered(answer, err)
}

// wokeJobs adds the wake of the runner, if jobs were put.
func wokeJobs(wakes []store.Wake, jobs []store.Job) []store.Wake {
	if len(jobs) == 0 {
		return wakes
	}
	return append(wakes, store.Wake{Kind: store.WakeJobs})
}

func insertJobs(ctx context.Context, tx *sql.Tx, jobs []store.Job) error {
	return each(ctx, tx, "insert into jobs (tenant, kind, job, session, body, due) values (?, ?, ?, ?, ?, ?) on conflict do nothing",
		jobs, func(j store.Job) []any {
			return []any{j.Tenant, string(j.Kind), j.ID, j.Session, j.Body, micros(j.Due)}
		})
}

// ClaimJobs implements store.Store.
func (s *Store) ClaimJobs(ctx context.Context, c store.JobClaim) ([]store.Job, error) {
	var jobs []store.Job
	err := s.write(ctx, "claim jobs", func(tx *sql.Tx) (_ []store.Wake, err error) {
		now := s.clock()
		query := `select tenant, kind, job, session, body, due, attempt from jobs
			where due <= ?1 and (lease_until is null or lease_until <= ?1)`
		args := []any{micros(now)}
		if c.ID != "" {
			query = strings.Replace(query, "due <= ?1", "tenant = ?2 and job = ?3", 1)
			args = append(args, c.Tenant, c.ID)
		}
		if len(c.Kinds) > 0 {
			query += " and kind in (?" + strings.Repeat(", ?", len(c.Kinds)-1) + ")"
		}
		for _, k := range c.Kinds {
			args = append(args, string(k))
		}
		query += " order by row_number() over (partition by tenant order by due, kind, job), due, tenant, kind, job limit ?"
		if jobs, err = collect(ctx, tx, scanJob, query, append(args, limit(c.Limit))...); err != nil {
			return nil, err
		}
		claim := id.New()
		for i := range jobs {
			jobs[i].Attempt++
			jobs[i].Claim = claim
		}
		return nil, each(ctx, tx, "update jobs set attempt = ?, claim = ?, lease_until = ? where tenant = ? and kind = ? and job = ?",
			jobs, func(j store.Job) []any {
				return []any{j.Attempt, j.Claim, micros(now.Add(c.TTL)), j.Tenant, string(j.Kind), j.ID}
			})
	})
	if err != nil {
		return nil, err
	}
	return jobs, nil
}

func scanJob(r *sql.Rows) (j store.Job, err error) {
	var due int64
	err = r.Scan(&j.Tenant, &j.Kind, &j.ID, &j.Session, &j.Body, &due, &j.Attempt)
	j.Due = fromMicros(due)
	return j, err
}

// EndJob implements store.Store.
func (s *Store) EndJob(ctx context.Context, j store.Job, again *store.Job) error {
	return s.write(ctx, "end job", func(tx *sql.Tx) ([]store.Wake, error) {
		const mine = " where tenant = ? and kind = ? and job = ? and claim = ?"
		key := []any{j.Tenant, string(j.Kind), j.ID, j.Claim}
		query, args := "delete from jobs"+mine, key
		if again != nil {
			query = "update jobs set due = ?, body = ?, attempt = ?, claim = '', lease_until = null" + mine
			args = append([]any{micros(backend.JobAt(*again, s.clock()).Due), again.Body, again.Attempt}, key...)
		}
		res, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		n, err := res.RowsAffected()
		if err == nil && n == 0 {
			err = store.ErrStaleEpoch
		}
		if err == nil && j.Kind == store.JobDelete && again == nil {
			_, err = tx.ExecContext(ctx, "update tombstones set clean = 1 where tenant = ? and session = ?", j.Tenant, j.ID)
		}
		return nil, err
	})
}
