package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// finder finds the agents of a tenant. The configuration's come first; they hide agents of the
// API that have the same name.
type finder struct {
	*Config
	stored sync.Map // tenant, agent and revision that the store has
}

// forSession returns the agent of a new session at its newest version, and keeps its revision. field
// names the agent in the request.
func (f *finder) forSession(ctx context.Context, tenant, name, field string) (agent.Agent, error) {
	if a, ok := f.Agents.Get(name); ok {
		if err := f.usable(a); err != nil {
			return a, err
		}
		return a, storeError(f.keep(ctx, tenant, a), subject{})
	}
	row, err := f.Store.GetAgent(ctx, tenant, agentName(name), 0)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return agent.Agent{}, agentNotFound(name, field)
	case err != nil:
		return agent.Agent{}, storeError(err, subject{})
	case row.ArchiveTime != nil:
		return agent.Agent{}, archivedAgent(row.Name)
	}
	return agentOf(row)
}

// FindAgent returns an agent at its newest version; store.ErrNotFound if it does not exist, or is archived.
func (s *Server) FindAgent(ctx context.Context, tenant, name string) (agent.Agent, error) {
	return s.sessions.find.newest(ctx, tenant, name)
}

// newest returns an agent at its newest version; store.ErrNotFound if it does not exist, or is archived.
func (f *finder) newest(ctx context.Context, tenant, name string) (agent.Agent, error) {
	if a, ok := f.Agents.Get(name); ok {
		return a, nil
	}
	row, err := f.Store.GetAgent(ctx, tenant, agentName(name), 0)
	switch {
	case err != nil:
		return agent.Agent{}, err
	case row.ArchiveTime != nil:
		return agent.Agent{}, fmt.Errorf("%s is archived: %w", row.Name, store.ErrNotFound)
	}
	return agentOf(row)
}

// ofSession returns the spec that a session is pinned to.
func (f *finder) ofSession(ctx context.Context, tenant string, session *sessionv1.Session) (agent.Spec, error) {
	if a, ok := f.Agents.Get(session.Agent); ok && a.Revision == session.AgentRevision {
		return a.Spec, f.usable(a)
	}
	rev, err := f.Store.GetAgentRevision(ctx, tenant, session.Agent, session.AgentRevision)
	if errors.Is(err, store.ErrNotFound) {
		return agent.Spec{}, fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_GONE,
			fmt.Sprintf("The session is pinned to revision %s of %s, which no longer exists. Create a new session.", session.AgentRevision, session.Agent))
	}
	if err != nil {
		return agent.Spec{}, storeError(err, subject{session: session.Name})
	}
	return agent.Unmarshal(rev.Spec)
}

// pinned returns the spec that the named session is pinned to.
func (f *finder) pinned(ctx context.Context, k store.Key, name string) (agent.Spec, error) {
	session, err := f.Store.GetSession(ctx, k)
	if err != nil {
		return agent.Spec{}, storeError(err, subject{session: name})
	}
	return f.ofSession(ctx, k.Tenant, session)
}

// usable refuses an agent of the configuration that uses names that do not exist.
func (f *finder) usable(a agent.Agent) error {
	faults := f.AgentFaults(a.ID)
	if len(faults) == 0 {
		return nil
	}
	var details []apierr.Option
	for _, fault := range faults {
		details = append(details, apierr.Precondition("AGENT", a.Name(), fault))
	}
	return fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_MISCONFIGURED,
		strings.Join(faults, "; ")+" Correct session.agents, or add the name to the tools service, and start the service again. Other agents work.", details...)
}

// keep stores the revision of an agent of the configuration, once a tenant.
func (f *finder) keep(ctx context.Context, tenant string, a agent.Agent) error {
	known := tenant + "\x00" + a.ID + "\x00" + a.Revision
	if _, ok := f.stored.Load(known); ok {
		return nil
	}
	err := f.Store.PutAgentRevision(ctx, tenant, store.AgentRevision{Name: a.Name(), Revision: a.Revision, Spec: a.Spec.Marshal()})
	if err == nil {
		f.stored.Store(known, true)
	}
	return err
}

// agentName returns the resource name of `{agent}` or `agents/{agent}`.
func agentName(name string) string { return "agents/" + strings.TrimPrefix(name, "agents/") }

// agentOf reads the spec of a row.
func agentOf(row store.AgentRow) (agent.Agent, error) {
	spec, err := agent.Unmarshal(row.Spec)
	if err != nil {
		return agent.Agent{}, fmt.Errorf("version %d of %s: %w", row.Version, row.Name, err)
	}
	return agent.Agent{ID: strings.TrimPrefix(row.Name, "agents/"), Revision: row.Revision, Version: row.Version, Spec: spec}, nil
}
