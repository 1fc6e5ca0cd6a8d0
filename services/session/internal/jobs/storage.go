package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cenkalti/backoff/v5"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// storing is the body of a JobStorage.
type storing struct {
	User string `json:"user"`
	Node string `json:"node"` // empty: the one without a name
}

// StorageJobs returns the jobs that delete a user's files on each of the nodes; an
// empty list means the one node without a name. The jobs are independent, so that a
// node that is away for long does not make the others delete newer files again. The
// caller may do the jobs at once until DeleteGrace is over.
func StorageJobs(tenant, user string, nodes []string) []store.Job {
	if len(nodes) == 0 {
		nodes = []string{""}
	}
	var all []store.Job
	for _, n := range nodes {
		body, err := json.Marshal(storing{user, n})
		if err != nil {
			panic(err) // strings always encode
		}
		all = append(all, store.Job{Tenant: tenant, Kind: store.JobStorage, ID: id.New(), Body: body, After: store.DeleteGrace})
	}
	return all
}

// deleteStorage does a store.JobStorage: it deletes the files when the node answers. A
// node that is no longer configured keeps its files, so the job fails for the operator
// to see.
func (d *Deps) deleteStorage(ctx context.Context, j store.Job) (*store.Job, error) {
	var what storing
	if err := json.Unmarshal(j.Body, &what); err != nil {
		return nil, backoff.Permanent(fmt.Errorf("read the job that deletes a user's storage: %w", err))
	}
	if nodes := d.Workspaces.Nodes; what.Node != "" && (!nodes.Managed() || !nodes.Known(what.Node)) {
		return nil, backoff.Permanent(fmt.Errorf("the sandbox node %s is no longer configured and may still have the storage of the user %q", what.Node, what.User))
	}
	ctx = principal.With(ctx, principal.Service(j.Tenant, what.User))
	if err := d.Sandbox.DeleteUserStorage(ctx, what.Node); err != nil {
		return nil, fmt.Errorf("delete the storage of the user %q on the sandbox node %q: %w", what.User, what.Node, err)
	}
	return nil, nil
}
