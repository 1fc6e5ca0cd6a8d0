package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ClaimJobs implements store.Store.
func (s *Store) ClaimJobs(ctx context.Context, c store.JobClaim) ([]store.Job, error) {
	var jobs []store.Job
	err := s.db.write(ctx, "claim jobs", func(tx *sql.Tx) (_ []store.Wake, err error) {
		now := s.db.clock()
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
