package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// AgentServer implements AgentService.
type AgentServer struct {
	sessionv1.UnimplementedAgentServiceServer
	*Config
}

// show returns the public form of an agent.
func (a *AgentServer) show(found agent.Agent) *sessionv1.Agent {
	out := found.Proto(a.Directory.DefaultModel(), found.ID == a.Directory.Agents.Default())
	out.Checkpoints = found.Spec.Checkpoints
	if out.Checkpoints == nil {
		out.Checkpoints = a.Checkpoints
	}
	return out
}

// showRow returns the public form of an agent that was made by the API.
func (a *AgentServer) showRow(row store.AgentRow) (*sessionv1.Agent, error) {
	found, err := directory.AgentOf(row)
	if err != nil {
		return nil, err
	}
	out := a.show(found)
	out.CreateTime, out.UpdateTime = timestamppb.New(row.CreateTime), timestamppb.New(row.VersionTime)
	if row.ArchiveTime != nil {
		out.ArchiveTime = timestamppb.New(*row.ArchiveTime)
	}
	return out, nil
}

// GetAgent reads an agent.
func (a *AgentServer) GetAgent(ctx context.Context, r *sessionv1.GetAgentRequest) (*sessionv1.GetAgentResponse, error) {
	if found, ok := a.Directory.Agents.Get(r.Name); ok {
		return &sessionv1.GetAgentResponse{Agent: a.show(found)}, nil
	}
	out, err := a.read(ctx, r.Name, 0)
	return &sessionv1.GetAgentResponse{Agent: out}, err
}

// read reads an agent that was made by the API, as it was at a version; 0 means the newest.
func (a *AgentServer) read(ctx context.Context, name string, version int32) (*sessionv1.Agent, error) {
	row, err := a.Store.GetAgent(ctx, principal.Tenant(ctx), name, version)
	if err != nil {
		return nil, refusal.Agent(err, name, "")
	}
	return a.showRow(row)
}

// ListAgents lists a page of agents. An agent of the configuration hides an older one of the
// tenant that has its name.
func (a *AgentServer) ListAgents(ctx context.Context, r *sessionv1.ListAgentsRequest) (*sessionv1.ListAgentsResponse, error) {
	tenant := principal.Tenant(ctx)
	scope := fmt.Sprintf("ListAgents\x00%s\x00%t", tenant, r.ShowArchived)
	all, next, err := request.List(scope, r, refusal.Subject{}, request.ByName, func(after string, n int) ([]*sessionv1.Agent, error) {
		rows, err := a.Store.ListAgents(ctx, tenant, "agents", after, r.ShowArchived, n)
		if err != nil {
			return nil, err
		}
		return a.merge(rows, after, n)
	})
	return &sessionv1.ListAgentsResponse{Agents: all, NextPageToken: next}, err
}

// merge returns the first n of the configuration's agents and the tenant's behind after, by name.
func (a *AgentServer) merge(rows []store.AgentRow, after string, n int) ([]*sessionv1.Agent, error) {
	var all []*sessionv1.Agent
	for _, found := range a.Directory.Agents.All() {
		if found.Name() > after {
			all = append(all, a.show(found))
		}
	}
	for _, row := range rows {
		if _, hidden := a.Directory.Agents.Get(row.Name); hidden {
			continue
		}
		shown, err := a.showRow(row)
		if err != nil {
			return nil, err
		}
		all = append(all, shown)
	}
	slices.SortFunc(all, func(x, y *sessionv1.Agent) int { return strings.Compare(x.Name, y.Name) })
	return all[:min(n, len(all))], nil
}

// capabilitiesTimeout is how long the sandbox service has to report its
// capabilities.
const capabilitiesTimeout = 5 * time.Second

// GetCapabilities reports what this server can do. If the sandbox service does not answer, it
// says so and reports the rest.
func (a *AgentServer) GetCapabilities(
	ctx context.Context, _ *sessionv1.GetCapabilitiesRequest,
) (*sessionv1.GetCapabilitiesResponse, error) {
	resp := &sessionv1.GetCapabilitiesResponse{Version: a.Version, Models: a.Directory.Models.Names(), DefaultModel: a.Directory.DefaultModel()}
	if a.Runtimes != nil {
		resp.Runtimes = a.Runtimes(ctx)
	}
	if a.Flags != nil {
		resp.Flags = a.Flags()
	}
	for _, e := range a.Directory.Models.All() {
		if warning := a.Directory.Models.Warning(e); e.Unusable != "" || warning != "" {
			resp.ModelNotes = append(resp.ModelNotes, &sessionv1.ModelCapabilities{Name: e.Name, Unusable: e.Unusable, Warning: warning})
		}
	}
	sandbox, err := a.sandbox(ctx)
	if err != nil {
		if left := ctx.Err(); left != nil {
			return nil, left
		}
		a.Log.WarnContext(ctx, "cannot ask the sandbox service what it can do", "error", err)
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
	if a.Nodes.Managed() {
		nodes = a.Nodes.List()
	}
	for _, name := range nodes {
		asking, cancel := context.WithTimeout(ctx, capabilitiesTimeout/time.Duration(len(nodes)))
		resp, err = a.Sandbox.Capabilities(asking, name)
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

// versionError is agentError for a request about one version.
func (a *AgentServer) versionError(ctx context.Context, err error, name string, version int32) error {
	if !errors.Is(err, store.ErrNotFound) {
		return refusal.Agent(err, name, "")
	}
	if _, err := a.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: name}); err != nil {
		return err
	}
	return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_VERSION_NOT_FOUND,
		fmt.Sprintf("%s has no version %d. List its versions to see which there are; an agent of the configuration file has none.", name, version),
		apierr.Resource("fairlead.dev/AgentVersion", fmt.Sprintf("%s/versions/%d", name, version), "not found"))
}
