package postgres

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// PutAgentRevision implements store.Store.
func (s *Store) PutAgentRevision(ctx context.Context, tenant string, a store.AgentRevision) error {
	_, err := s.pool.Exec(ctx,
		"insert into agent_revisions (tenant, name, revision, spec) values ($1, $2, $3, $4) on conflict do nothing",
		tenant, a.Name, a.Revision, a.Spec)
	return fail("put agent revision", err)
}

// GetAgentRevision implements store.Store.
func (s *Store) GetAgentRevision(ctx context.Context, tenant, name, revision string) (store.AgentRevision, error) {
	a := store.AgentRevision{Name: name, Revision: revision}
	err := s.pool.QueryRow(ctx, "select spec from agent_revisions where tenant = $1 and name = $2 and revision = $3",
		tenant, name, revision).Scan(&a.Spec)
	return a, fail("get agent revision", err)
}
