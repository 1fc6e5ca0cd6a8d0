package sqlite

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// PutAgentRevision implements store.Store.
func (s *Store) PutAgentRevision(ctx context.Context, tenant string, a store.AgentRevision) error {
	_, err := s.db.W.ExecContext(ctx,
		"insert into agent_revisions (tenant, name, revision, spec) values (?, ?, ?, ?) on conflict do nothing",
		tenant, a.Name, a.Revision, a.Spec)
	return s.fail("put agent revision", err)
}

// GetAgentRevision implements store.Store.
func (s *Store) GetAgentRevision(ctx context.Context, tenant, name, revision string) (store.AgentRevision, error) {
	a := store.AgentRevision{Name: name, Revision: revision}
	err := s.db.R.QueryRowContext(ctx, "select spec from agent_revisions where tenant = ? and name = ? and revision = ?",
		tenant, name, revision).Scan(&a.Spec)
	return a, s.fail("get agent revision", err)
}
