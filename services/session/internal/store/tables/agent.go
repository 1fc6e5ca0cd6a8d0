package tables

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

type agents struct{ db DB }

// PutAgentRevision implements store.Store.
func (t agents) PutAgentRevision(ctx context.Context, tenant string, a store.AgentRevision) error {
	_, err := t.db.Exec(ctx, "put agent revision",
		"insert into agent_revisions (tenant, name, revision, spec) values ($1, $2, $3, $4) on conflict do nothing",
		tenant, a.Name, a.Revision, a.Spec)
	return err
}

// GetAgentRevision implements store.Store.
func (t agents) GetAgentRevision(ctx context.Context, tenant, name, revision string) (store.AgentRevision, error) {
	a := store.AgentRevision{Name: name, Revision: revision}
	err := t.db.Reader().QueryRow(ctx, "select spec from agent_revisions where tenant = $1 and name = $2 and revision = $3",
		tenant, name, revision).Scan(&a.Spec)
	return a, t.db.Fail("get agent revision", err)
}
