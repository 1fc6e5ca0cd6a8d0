package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// AgentServer implements AgentService.
type AgentServer struct {
	sessionv1.UnimplementedAgentServiceServer
	s *Server
}

// AgentService returns the server of AgentService.
func (s *Server) AgentService() *AgentServer { return &AgentServer{s: s} }

func agentNotFound(name, field string) error {
	return fail(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND,
		fmt.Sprintf("There is no agent %q. List the agents (GET /v1/agents) to see which there are.", name),
		apierr.Resource("fairlead.dev/Agent", name, "not found"), apierr.Metadata(map[string]string{"field": field}))
}

// show returns the public form of an agent.
func (a *AgentServer) show(found agent.Agent) *sessionv1.Agent {
	out := found.Proto(a.s.DefaultModel, found.ID == a.s.Agents.Default())
	out.Checkpoints = found.Spec.Checkpoints
	if out.Checkpoints == nil {
		out.Checkpoints = a.s.Checkpoints
	}
	return out
}

// GetAgent reads an agent.
func (a *AgentServer) GetAgent(_ context.Context, r *sessionv1.GetAgentRequest) (*sessionv1.GetAgentResponse, error) {
	found, ok := a.s.Agents.Get(r.Name)
	if !ok {
		return nil, agentNotFound(r.Name, "name")
	}
	return &sessionv1.GetAgentResponse{Agent: a.show(found)}, nil
}

// ListAgents lists a page of agents.
func (a *AgentServer) ListAgents(_ context.Context, r *sessionv1.ListAgentsRequest) (*sessionv1.ListAgentsResponse, error) {
	after := ""
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, "ListAgents", &after); err != nil {
			return nil, storeError(err, subject{})
		}
	}
	size := page.Size(r.PageSize, 50, 1000)
	agents, more, _ := page.Fill(size, func(last *sessionv1.Agent, n int) (some []*sessionv1.Agent, _ error) {
		if last != nil {
			after = agentID(last)
		}
		for _, found := range a.s.Agents.All() {
			if found.ID > after && len(some) < n {
				some = append(some, a.show(found))
			}
		}
		return some, nil
	})
	resp := &sessionv1.ListAgentsResponse{Agents: agents}
	if more {
		resp.NextPageToken = page.Encode("ListAgents", agentID(agents[len(agents)-1]))
	}
	return resp, nil
}

func agentID(a *sessionv1.Agent) string { return strings.TrimPrefix(a.Name, "agents/") }

// capabilitiesTimeout is how long the sandbox service has to report its
// capabilities.
const capabilitiesTimeout = 5 * time.Second

// GetCapabilities reports what this server can do. If the sandbox service does not answer, it
// says so and reports the rest.
func (a *AgentServer) GetCapabilities(ctx context.Context, _ *sessionv1.GetCapabilitiesRequest) (*sessionv1.GetCapabilitiesResponse, error) {
	resp := &sessionv1.GetCapabilitiesResponse{Version: a.s.Version, Models: a.s.Models, DefaultModel: a.s.DefaultModel}
	sandbox, err := a.sandbox(ctx)
	if err != nil {
		if left := ctx.Err(); left != nil {
			return nil, left
		}
		a.s.Log.WarnContext(ctx, "cannot ask the sandbox service what it can do", "error", err)
		resp.SandboxUnavailable = unavailable(err)
		return resp, nil
	}
	resp.Sandbox = &sessionv1.SandboxCapabilities{
		Level: sandbox.Level, Driver: sandbox.Driver, Includes: sandbox.Includes, Network: sandbox.Network, WorkspaceQuota: sandbox.WorkspaceQuota,
	}
	return resp, nil
}

// sandbox returns the capabilities of the first sandbox node that answers.
func (a *AgentServer) sandbox(ctx context.Context) (resp *sandboxv1.GetCapabilitiesResponse, err error) {
	nodes := []string{""} // the only one
	if a.s.Nodes.Managed() {
		nodes = a.s.Nodes.List()
	}
	for _, name := range nodes {
		asking, cancel := context.WithTimeout(ctx, capabilitiesTimeout/time.Duration(len(nodes)))
		resp, err = a.s.Sandbox.Capabilities(asking, name)
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return resp, err
}

// unavailable says why the sandbox service did not answer. It leaves out details for the
// operator, which are in the log.
func unavailable(err error) string {
	why := "failed to list its capabilities"
	switch status.Code(err) { //nolint:exhaustive // all others are failures
	case codes.Unavailable:
		why = "cannot be reached"
	case codes.DeadlineExceeded:
		why = "did not answer within " + capabilitiesTimeout.String()
	}
	return "The sandbox service " + why + ": commands, files and repositories cannot be used until that is fixed. Try again later; the log of the session service has the cause."
}

// checkAgent refuses an agent that uses names that do not exist.
func (s *sessions) checkAgent(a agent.Agent) error {
	faults := s.AgentFaults(a.ID)
	if len(faults) == 0 {
		return nil
	}
	var details []apierr.Option
	for _, f := range faults {
		details = append(details, apierr.Precondition("AGENT", a.Name(), f))
	}
	return fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_MISCONFIGURED,
		strings.Join(faults, "; ")+" Correct session.agents, or add the name to the tools service, and start the service again. Other agents work.", details...)
}
