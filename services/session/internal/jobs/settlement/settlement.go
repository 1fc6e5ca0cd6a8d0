// Package settlement settles the reservations of model calls whose program has died.
package settlement

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Handler returns the handler of store.JobSettle: an open reservation counts as used.
func Handler(ledger store.Ledger) jobs.Handler {
	return func(ctx context.Context, j store.Job) (*store.Job, error) {
		return nil, ledger.Spend(ctx, store.Spending{
			Key: store.Key{Tenant: j.Tenant, Session: j.Session}, Settle: []store.Settle{{ID: string(j.Body), Unknown: true}},
		})
	}
}
