package jobs

import (
	"context"
	"fmt"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// GrantsJob returns the job that deletes the grants of a user who was deleted.
func GrantsJob(tenant, user string) store.Job {
	return store.Job{Tenant: tenant, Kind: store.JobGrants, ID: id.New(), Body: []byte(user)}
}

// deleteGrants does a store.JobGrants.
func (d *Deps) deleteGrants(ctx context.Context, j store.Job) (*store.Job, error) {
	ctx = principal.With(ctx, principal.Service(j.Tenant, string(j.Body)))
	if err := d.Tools.DeleteUserGrants(ctx); err != nil {
		return nil, fmt.Errorf("delete the grants of the user %q: %w", j.Body, err)
	}
	return nil, nil
}
