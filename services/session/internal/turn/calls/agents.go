package calls

import (
	"context"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Agents makes agents for other agents.
type Agents interface {
	// MakeAgent makes an agent, or a new version of one. It returns what the model is told, and whether it was
	// refused. An error means that the call may be made again.
	MakeAgent(ctx context.Context, m directory.Making) (told string, refused bool, err error)
}

// makeAgent makes a call of create_agent or edit_agent.
func (c *caller) makeAgent(sc state.Scope, u *sessionv1.ToolUse, d *toolsv1.CallDelegated) (*toolsv1.CallResult, error) {
	c.mu.Lock()
	run := sc.Active.Run
	c.mu.Unlock()
	told, refused, err := c.calls.Agents.MakeAgent(sc, directory.Making{
		Tenant: sc.Lease.Tenant, User: run.User, Turn: sc.Active.Proto.Name, ID: u.CallId, Allowed: run.WritesAgents,
		Maker: sc.Spec, Filters: sc.Filters(), Tool: d.Tool, Arguments: d.ArgumentsJson,
	})
	if err != nil {
		return nil, remote.Error(err) // the directory refuses as a peer does
	}
	result := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK, Content: []*commonv1.Content{state.Text(told)}}
	if refused {
		result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
	}
	return result, nil
}
