package tables

import (
	"context"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type jobs struct{ db DB }

// PutJobs implements store.Store.
func (t jobs) PutJobs(ctx context.Context, all []store.Job) error {
	if len(all) == 0 {
		return nil
	}
	return t.db.Write(ctx, "put jobs", func(tx Tx) ([]store.Wake, error) { return putJobs(ctx, tx, all) })
}

// RequestJobs implements store.Store.
func (t jobs) RequestJobs(ctx context.Context, tenant string, all []store.Job, r store.Request) (store.Answer, error) {
	return once(ctx, t.db, "request jobs", request{Request: r, tenant: tenant}, nil,
		func(tx Tx) ([]store.Wake, error) { return putJobs(ctx, tx, all) })
}

// putJobs puts jobs whose times are relative to now.
func putJobs(ctx context.Context, tx Tx, all []store.Job) ([]store.Wake, error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]store.Job, len(all))
	for i, j := range all {
		rows[i] = plan.JobAt(j, now)
	}
	return WithJobs(nil, rows), tx.Insert(ctx, Rows{Jobs: rows})
}

// WithJobs adds the wake of the runner, if jobs were put.
func WithJobs(wakes []store.Wake, put []store.Job) []store.Wake {
	if len(put) == 0 {
		return wakes
	}
	return append(wakes, store.Wake{Kind: store.WakeJobs})
}

// EndJob implements store.Store.
func (t jobs) EndJob(ctx context.Context, j store.Job, again *store.Job) error {
	return t.db.WriteUnsynced(ctx, "end job", func(tx Tx) error {
		const mine = " where tenant = $1 and kind = $2 and job = $3 and claim = $4"
		query, args := "delete from jobs"+mine, []any{j.Tenant, j.Kind, j.ID, j.Claim}
		if again != nil {
			query = "update jobs set due = coalesce($5, clock_timestamp() + $8::interval), body = $6, attempt = $7, claim = '', lease_until = null" + mine
			args = append(args, sqldb.Null(plan.Micros(again.Due)), again.Body, again.Attempt, again.After)
		}
		n, err := tx.Exec(ctx, query, args...)
		if err == nil && n == 0 {
			err = store.ErrStaleEpoch
		}
		if err == nil && j.Kind == store.JobDelete && again == nil {
			_, err = tx.Exec(ctx, "update tombstones set clean = true where tenant = $1 and session = $2", j.Tenant, j.ID)
		}
		return err
	})
}

// dropJob deletes a job.
func dropJob(ctx context.Context, tx Tx, j store.Job) error {
	_, err := tx.Exec(ctx, "delete from jobs where tenant = $1 and kind = $2 and job = $3", j.Tenant, j.Kind, j.ID)
	return err
}
