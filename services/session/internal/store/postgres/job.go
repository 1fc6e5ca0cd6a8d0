package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func queueJobs(b *pgx.Batch, jobs []store.Job) {
	if len(jobs) == 0 {
		return
	}
	var tenants, kinds, ids, sessions []string
	var bodies [][]byte
	var due []time.Time
	for _, j := range jobs {
		tenants, kinds, ids = append(tenants, j.Tenant), append(kinds, string(j.Kind)), append(ids, j.ID)
		sessions, bodies, due = append(sessions, j.Session), append(bodies, j.Body), append(due, j.Due)
	}
	b.Queue(`insert into jobs (tenant, kind, job, session, body, due)
		select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[])
		on conflict do nothing`,
		tenants, kinds, ids, sessions, bodies, due)
}

// ClaimJobs implements store.Store. The ranking reads a snapshot, so the outer
// conditions are checked again on the locked rows.
func (s *Store) ClaimJobs(ctx context.Context, c store.JobClaim) ([]store.Job, error) {
	const mine = "tenant = @tenant and job = @id and (lease_until is null or lease_until <= clock_timestamp()) and (@kinds::text[] is null or kind = any(@kinds))"
	const due = "due <= clock_timestamp() and (lease_until is null or lease_until <= clock_timestamp()) and (@kinds::text[] is null or kind = any(@kinds))"
	free := due
	if c.ID != "" {
		free = mine
	}
	query := `
		with ranked as (
			select tenant, kind, job, row_number() over (partition by tenant order by due, kind, job) as place
			from jobs j where ` + free + `
		), picked as (
			select j.tenant, j.kind, j.job from jobs j join ranked r using (tenant, kind, job)
			where ` + free + `
			order by r.place, j.due, j.tenant, j.kind, j.job
			limit @limit
			for update of j skip locked
		)
		update jobs j set attempt = j.attempt + 1, claim = @claim, lease_until = clock_timestamp() + @ttl::interval
		from picked p where j.tenant = p.tenant and j.kind = p.kind and j.job = p.job
		returning j.tenant, j.kind, j.job, j.session, j.body, j.due, j.attempt, j.claim`
	args := pgx.NamedArgs{"limit": limit(c.Limit), "ttl": c.TTL, "claim": id.New(), "kinds": c.Kinds}
	if c.ID != "" {
		args["tenant"], args["id"] = c.Tenant, c.ID
	}
	var jobs []store.Job
	err := s.db.writeUnsynced(ctx, "claim jobs", func(tx pgx.Tx) (err error) {
		jobs, err = collect(ctx, tx, func(r pgx.CollectableRow) (j store.Job, err error) {
			err = r.Scan(&j.Tenant, &j.Kind, &j.ID, &j.Session, &j.Body, &j.Due, &j.Attempt, &j.Claim)
			j.Due = j.Due.UTC()
			return j, err
		}, query, args)
		return err
	})
	return jobs, err
}
