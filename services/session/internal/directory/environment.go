package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// EnvironmentOf reads the environment of a row.
func EnvironmentOf(row store.AgentRow) (agent.Environment, error) {
	var e agent.Environment
	if err := json.Unmarshal(row.Spec, &e); err != nil {
		return e, fmt.Errorf("version %d of %s: %w", row.Version, row.Name, err)
	}
	e.Name, e.Version = row.Name, row.Version
	return e, nil
}

// InEnvironment returns the agent of a session in the environment that the session names, or else the agent.
// It keeps the revision of both together.
func (d *Directory) InEnvironment(ctx context.Context, tenant, asked string, a agent.Agent) (agent.Agent, error) {
	name := a.Spec.Environment
	if asked != "" {
		name = "environments/" + strings.TrimPrefix(asked, "environments/")
	}
	if name == "" {
		return a, nil
	}
	row, err := d.Store.GetAgent(ctx, tenant, name, 0)
	switch {
	case err != nil:
		return a, refusal.Environment(err, name, "")
	case row.ArchiveTime != nil:
		return a, refusal.EnvironmentArchived(name)
	}
	e, err := EnvironmentOf(row)
	if err != nil {
		return a, err
	}
	made := agent.New(a.ID, a.Spec.In(e))
	made.Version = a.Version
	return made, refusal.Store(d.keep(ctx, tenant, made), refusal.Subject{})
}
