package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// PutJobs implements store.Store.
func (s *Store) PutJobs(ctx context.Context, jobs []store.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	err := s.write(ctx, "put jobs", func(tx pgx.Tx) error { return putNewJobs(ctx, tx, jobs) })
	s.wokeJobs(err, jobs)
	return err
}

// putNewJobs puts jobs whose times are relative to now.
func putNewJobs(ctx context.Context, tx pgx.Tx, jobs []store.Job) error {
	now, err := dbNow(ctx, tx)
	if err != nil {
		return err
	}
	rows := make([]store.Job, len(jobs))
	for i, j := range jobs {
		rows[i] = backend.JobAt(j, now)
	}
	return putJobs(ctx, tx, rows)
}

// RequestJobs implements store.Store.
func (s *Store) RequestJobs(ctx context.Context, tenant string, jobs []store.Job, r store.Request) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, "request jobs", func(tx pgx.Tx) error {
		var err error
		if answer, err = remember(ctx, tx, tenant, "", r, ""); err != nil || answer.Replayed {
			return err
		}
		return putNewJobs(ctx, tx, jobs)
	})
	if !answer.Replayed {
		s.wokeJobs(err, jobs)
	}
	return backend.Answered(answer, err)
}

// wokeJobs wakes this replica's runner, if jobs were put.
func (s *Store) wokeJobs(err error, jobs []store.Job) {
	if err == nil && len(jobs) > 0 {
		s.wakes.Send(store.Wake{Kind: store.WakeJobs})
	}
}

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
	err := s.write(ctx, "claim jobs", func(tx pgx.Tx) (err error) {
		jobs, err = collect(ctx, tx, func(r pgx.CollectableRow) (j store.Job, err error) {
			err = r.Scan(&j.Tenant, &j.Kind, &j.ID, &j.Session, &j.Body, &j.Due, &j.Attempt, &j.Claim)
			j.Due = j.Due.UTC()
			return j, err
		}, query, args)
		return err
	})
	return jobs, err
}

// EndJob implements store.Store.
func (s *Store) EndJob(ctx context.Context, j store.Job, again *store.Job) error {
	return s.write(ctx, "end job", func(tx pgx.Tx) error {
		const mine = " where tenant = $1 and kind = $2 and job = $3 and claim = $4"
		query, args := "delete from jobs"+mine, []any{j.Tenant, j.Kind, j.ID, j.Claim}
		if again != nil {
			query = "update jobs set due = coalesce($5, clock_timestamp() + $8::interval), body = $6, attempt = $7, claim = '', lease_until = null" + mine
			args = append(args, dueOrNil(again.Due), again.Body, again.Attempt, again.After)
		}
		tag, err := tx.Exec(ctx, query, args...)
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrStaleEpoch
		}
		if err == nil && j.Kind == store.JobDelete && again == nil {
			_, err = tx.Exec(ctx, "update tombstones set clean = true where tenant = $1 and session = $2", j.Tenant, j.ID)
		}
		return err
	})
}

// dueOrNil returns nil for a job without a due time.
func dueOrNil(due time.Time) *time.Time {
	if due.IsZero() {
		return nil
	}
	due = backend.Micros(due)
	return &due
}
