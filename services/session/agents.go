package session

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
)

// checkAgentsEvery is the wait between two questions to the tools service.
const checkAgentsEvery = 5 * time.Second

// agents asks the tools service whether it has what the agents need, until it has
// everything.
type agents struct {
	needs *toolsv1.CheckAgentsRequest
	every time.Duration // between two questions
	tools *remote.Tools
	log   *slog.Logger

	mu     sync.Mutex
	faults []*toolsv1.AgentFault
}

func newAgents(set *agent.Set, tools *remote.Tools, log *slog.Logger) *agents {
	a := &agents{every: checkAgentsEvery, needs: &toolsv1.CheckAgentsRequest{}, tools: tools, log: log}
	for _, x := range set.All() {
		a.needs.Agents = append(a.needs.Agents, x.Needs())
	}
	return a
}

// run asks until all agents fit. An unreachable tools service is not a fault of
// the agents.
func (a *agents) run(ctx context.Context) error {
	ctx = principal.With(ctx, principal.Service("default", "default")) // names belong to no tenant
	again := time.NewTicker(a.every)
	defer again.Stop()
	for {
		faults, err := a.tools.CheckAgents(ctx, a.needs)
		if ctx.Err() != nil || err == nil && len(faults) == 0 || status.Code(err) == codes.Unimplemented {
			a.note(ctx, nil)
			return nil
		}
		if err == nil {
			a.note(ctx, faults)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// note stores the faults, and logs new ones.
func (a *agents) note(ctx context.Context, faults []*toolsv1.AgentFault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range faults {
		if !slices.ContainsFunc(a.faults, func(known *toolsv1.AgentFault) bool { return known.Message == f.Message }) {
			a.log.WarnContext(ctx, "an agent does not fit the tools service; this replica is not ready, and refuses this agent", "fault", f.Message)
		}
	}
	a.faults = faults
}

// faultsOf returns what the tools service lacks of what an agent needs, as far as it is known.
func (a *agents) faultsOf(id string) (faults []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.faults {
		if f.Agent == id {
			faults = append(faults, f.Message)
		}
	}
	return faults
}

// fit returns an error that lists what the tools service lacks.
func (a *agents) fit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.faults) == 0 {
		return nil
	}
	var lines rpc.NotReadyError
	for _, f := range a.faults {
		lines = append(lines, f.Message)
	}
	return lines
}
