package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Patience bounds the wait for the tools service, which knows the names of tools and profiles.
const Patience = 5 * time.Second

// WriteAgent writes an agent, or a new version of one, and returns the name and the version. It refuses a spec that breaks a
// rule of configured agents, with more faults that the caller has found.
func (d *Directory) WriteAgent(
	ctx context.Context, made agent.Agent, w store.AgentWrite, faults ...agent.Fault,
) (name string, version int32, err error) {
	if err := d.check(ctx, w.Tenant, made, faults); err != nil {
		return "", 0, err
	}
	w.AgentRevision = store.AgentRevision{Name: made.Name(), Revision: made.Revision, Spec: made.Spec.Marshal()}
	answer, err := d.Store.WriteAgent(ctx, w)
	if errors.Is(err, store.ErrConflict) {
		return "", 0, refusal.VersionConflict(ctx, d.Store, made.Name(), w.Expected, refusal.Agent)
	}
	if err != nil {
		return "", 0, refusal.Agent(err, made.Name(), w.Request.ID)
	}
	return SplitVersion(answer.Value)
}

// check refuses a spec that breaks a rule of configured agents. It reports every fault at once.
func (d *Directory) check(ctx context.Context, tenant string, made agent.Agent, faults []agent.Fault) error {
	faults = slices.Concat(faults, made.Spec.Faults(), d.ModelFaults(ctx, made.Spec))
	if name := made.Spec.Environment; name != "" {
		_, err := d.Store.GetAgent(ctx, tenant, name, 0)
		if errors.Is(err, store.ErrNotFound) {
			faults = append(faults, agent.Fault{Field: "environment", Text: "there is no " + name})
		} else if err != nil {
			return refusal.Store(err, refusal.Subject{})
		}
	}
	for _, sub := range made.Spec.Subagents {
		fault, err := d.subagentFault(ctx, tenant, sub)
		if err != nil {
			return err
		}
		faults = append(faults, fault...)
	}
	asking, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	missing, err := d.Tools.CheckAgents(asking, &toolsv1.CheckAgentsRequest{
		Agents: []*toolsv1.AgentNeeds{made.Needs()},
	})
	if err != nil {
		if left := ctx.Err(); left != nil {
			return left
		}
		d.Log.WarnContext(ctx, "cannot ask the tools service about an agent", "agent", made.ID, "error", err)
		return refusal.ToolsUnavailable("The agent's tools and profile cannot be checked, because the tools service does not answer. Nothing was changed; try again, with the same request id.")
	}
	for _, f := range missing {
		faults = append(faults, agent.Fault{Field: f.Field, Text: f.Message})
	}
	return refusal.Spec(faults)
}

// subagentFault reports a subagent's agent that does not exist.
func (d *Directory) subagentFault(ctx context.Context, tenant string, sub agent.Subagent) ([]agent.Fault, error) {
	if _, configured := d.Agents.Get(sub.Agent); sub.Agent == "" || configured {
		return nil, nil
	}
	_, err := d.Store.GetAgent(ctx, tenant, sub.Agent, 0)
	if errors.Is(err, store.ErrNotFound) {
		return []agent.Fault{{Field: "subagents", Text: fmt.Sprintf("subagent %q: there is no %s", sub.Name, sub.Agent)}}, nil
	}
	return nil, refusal.Store(err, refusal.Subject{})
}

// Changeable refuses to change an agent of the configuration.
func (d *Directory) Changeable(name string) error {
	if _, ok := d.Agents.Get(name); !ok {
		return nil
	}
	return refusal.AgentReadOnly(name)
}
