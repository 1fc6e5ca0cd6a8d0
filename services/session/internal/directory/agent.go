package directory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// AgentForSession returns the agent of a new session at its newest version, and keeps its revision. field
// names the agent in the request.
func (d *Directory) AgentForSession(ctx context.Context, tenant, name, field string) (agent.Agent, error) {
	if a, ok := d.Agents.Get(name); ok {
		if err := d.usable(a); err != nil {
			return a, err
		}
		return a, refusal.Store(d.keep(ctx, tenant, a), refusal.Subject{})
	}
	row, err := d.Store.GetAgent(ctx, tenant, AgentName(name), 0)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return agent.Agent{}, refusal.AgentNotFound(name, field)
	case err != nil:
		return agent.Agent{}, refusal.Store(err, refusal.Subject{})
	case row.ArchiveTime != nil:
		return agent.Agent{}, refusal.AgentArchived(row.Name)
	}
	return AgentOf(row)
}

// Agent returns an agent at its newest version; store.ErrNotFound if it does not exist, or is archived.
func (d *Directory) Agent(ctx context.Context, tenant, name string) (agent.Agent, error) {
	if a, ok := d.Agents.Get(name); ok {
		return a, nil
	}
	row, err := d.Store.GetAgent(ctx, tenant, AgentName(name), 0)
	switch {
	case err != nil:
		return agent.Agent{}, err
	case row.ArchiveTime != nil:
		return agent.Agent{}, fmt.Errorf("%s is archived: %w", row.Name, store.ErrNotFound)
	}
	return AgentOf(row)
}

// SpecOf returns the spec that a session is pinned to.
func (d *Directory) SpecOf(ctx context.Context, tenant string, session *sessionv1.Session) (agent.Spec, error) {
	if a, ok := d.Agents.Get(session.Agent); ok && a.Revision == session.AgentRevision {
		return a.Spec, d.usable(a)
	}
	rev, err := d.Store.GetAgentRevision(ctx, tenant, session.Agent, session.AgentRevision)
	if errors.Is(err, store.ErrNotFound) {
		return agent.Spec{}, refusal.AgentGone(session.Agent, session.AgentRevision)
	}
	if err != nil {
		return agent.Spec{}, refusal.Store(err, refusal.Subject{Session: session.Name})
	}
	return agent.Unmarshal(rev.Spec)
}

// Pinned returns the spec that the named session is pinned to.
func (d *Directory) Pinned(ctx context.Context, k store.Key, name string) (agent.Spec, error) {
	session, err := d.Store.GetSession(ctx, k)
	if err != nil {
		return agent.Spec{}, refusal.Store(err, refusal.Subject{Session: name})
	}
	return d.SpecOf(ctx, k.Tenant, session)
}

// usable refuses an agent of the configuration that uses names that do not exist.
func (d *Directory) usable(a agent.Agent) error {
	faults := d.Missing(a.ID)
	if len(faults) == 0 {
		return nil
	}
	return refusal.AgentMisconfigured(a.Name(), faults)
}

// keep stores the revision of an agent of the configuration, once a tenant.
func (d *Directory) keep(ctx context.Context, tenant string, a agent.Agent) error {
	known := tenant + "\x00" + a.ID + "\x00" + a.Revision
	if _, ok := d.kept.Load(known); ok {
		return nil
	}
	err := d.Store.PutAgentRevision(ctx, tenant, store.AgentRevision{Name: a.Name(), Revision: a.Revision, Spec: a.Spec.Marshal()})
	if err == nil {
		d.kept.Store(known, true)
	}
	return err
}

// AgentName returns the resource name of `{agent}` or `agents/{agent}`.
func AgentName(name string) string { return "agents/" + strings.TrimPrefix(name, "agents/") }

// AgentOf reads the spec of a row.
func AgentOf(row store.AgentRow) (agent.Agent, error) {
	spec, err := agent.Unmarshal(row.Spec)
	if err != nil {
		return agent.Agent{}, fmt.Errorf("version %d of %s: %w", row.Version, row.Name, err)
	}
	return agent.Agent{ID: strings.TrimPrefix(row.Name, "agents/"), Revision: row.Revision, Version: row.Version, Spec: spec}, nil
}
