package faulty

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of agents.
const (
	PutAgentRevision  Method = "PutAgentRevision"
	GetAgentRevision  Method = "GetAgentRevision"
	WriteAgent        Method = "WriteAgent"
	ArchiveAgent      Method = "ArchiveAgent"
	DeleteAgent       Method = "DeleteAgent"
	GetAgent          Method = "GetAgent"
	ListAgents        Method = "ListAgents"
	ListAgentVersions Method = "ListAgentVersions"
)

// PutAgentRevision implements store.Agents.
func (s agents) PutAgentRevision(ctx context.Context, tenant string, a store.AgentRevision) error {
	return just(ctx, s.injector, PutAgentRevision, func() error { return s.inner.PutAgentRevision(ctx, tenant, a) })
}

// GetAgentRevision implements store.Agents.
func (s agents) GetAgentRevision(ctx context.Context, tenant, name, revision string) (store.AgentRevision, error) {
	return do(ctx, s.injector, GetAgentRevision, func() (store.AgentRevision, error) {
		return s.inner.GetAgentRevision(ctx, tenant, name, revision)
	})
}

// WriteAgent implements store.Agents.
func (s agents) WriteAgent(ctx context.Context, w store.AgentWrite) (store.Answer, error) {
	return do(ctx, s.injector, WriteAgent, func() (store.Answer, error) { return s.inner.WriteAgent(ctx, w) })
}

// ArchiveAgent implements store.Agents.
func (s agents) ArchiveAgent(ctx context.Context, a store.ArchiveAgent) (store.Answer, error) {
	return do(ctx, s.injector, ArchiveAgent, func() (store.Answer, error) { return s.inner.ArchiveAgent(ctx, a) })
}

// DeleteAgent implements store.Agents.
func (s agents) DeleteAgent(ctx context.Context, d store.DeleteAgent) (store.Answer, error) {
	return do(ctx, s.injector, DeleteAgent, func() (store.Answer, error) { return s.inner.DeleteAgent(ctx, d) })
}

// GetAgent implements store.Agents.
func (s agents) GetAgent(ctx context.Context, tenant, name string, version int32) (store.AgentRow, error) {
	return do(ctx, s.injector, GetAgent, func() (store.AgentRow, error) { return s.inner.GetAgent(ctx, tenant, name, version) })
}

// ListAgents implements store.Agents.
func (s agents) ListAgents(ctx context.Context, tenant, collection, after string, archived bool, limit int) ([]store.AgentRow, error) {
	return do(ctx, s.injector, ListAgents, func() ([]store.AgentRow, error) {
		return s.inner.ListAgents(ctx, tenant, collection, after, archived, limit)
	})
}

// ListAgentVersions implements store.Agents.
func (s agents) ListAgentVersions(ctx context.Context, tenant, name string, before int32, limit int) ([]store.AgentRow, error) {
	return do(ctx, s.injector, ListAgentVersions, func() ([]store.AgentRow, error) {
		return s.inner.ListAgentVersions(ctx, tenant, name, before, limit)
	})
}
