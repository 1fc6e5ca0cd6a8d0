package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ClaimJobs implements store.Store.
func (s *Store) ClaimJobs(ctx context.Context, c store.JobClaim) ([]store.Job, error) {
	var jobs []store.Job
	err := s.db.writeBy(ctx, s.db.TxUnsynced, "claim jobs", func(tx *sql.Tx) (_ []store.Wake, err error) {
		now := s.db.clock()
		query, args := "due <= $1", []any{now}
		if c.ID != "" {
			query, args = "tenant = $2 and job = $3", append(args, c.Tenant, c.ID)
		}
		query = "select tenant, kind, job, session, body, due, attempt from jobs where (lease_until is null or lease_until <= $1) and " + query
		if len(c.Kinds) > 0 {
			query += " and kind in (?" + strings.Repeat(", ?", len(c.Kinds)-1) + ")"
		}
		for _, k := range c.Kinds {
			args = append(args, k)
		}
		query += " order by row_number() over (partition by tenant order by due, kind, job), due, tenant, kind, job limit ? + 0"
		if jobs, err = sqldb.Collect(ctx, s.sql(tx), func(r sqldb.Row) (j store.Job, err error) {
			return j, r.Scan(&j.Tenant, &j.Kind, &j.ID, &j.Session, &j.Body, &j.Due, &j.Attempt)
		}, query, append(args, sqldb.Limit(c.Limit))...); err != nil {
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
