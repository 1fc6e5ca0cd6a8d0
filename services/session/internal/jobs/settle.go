package jobs

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// settle does a store.JobSettle: it settles the reservation of a model call whose program has died. An open
// reservation counts as used.
func (d *Deps) settle(ctx context.Context, j store.Job) (*store.Job, error) {
	return nil, d.Store.Spend(ctx, store.Spending{
		Key: store.Key{Tenant: j.Tenant, Session: j.Session}, Settle: []store.Settle{{ID: string(j.Body), Unknown: true}},
	})
}
