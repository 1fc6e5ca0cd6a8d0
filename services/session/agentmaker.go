package session

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
)

// agentMaker makes the agents that agents ask for. The server exists once turns run.
type agentMaker struct{ s *Service }

// MakeAgent implements calls.Agents.
func (m agentMaker) MakeAgent(ctx context.Context, c calls.AgentCall) (told string, refused bool, err error) {
	return m.s.server.AgentService().MakeAgent(ctx, c, m.s.recorder)
}
