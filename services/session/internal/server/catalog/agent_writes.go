package catalog

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// CreateAgent creates an agent.
func (a *AgentServer) CreateAgent(ctx context.Context, r *sessionv1.CreateAgentRequest) (*sessionv1.CreateAgentResponse, error) {
	agentID := r.AgentId
	if agentID == "" {
		agentID = "a" + id.New() // a name begins with a letter
	}
	if _, taken := a.Directory.Agents.Get(agentID); taken {
		return nil, refusal.AgentExists(directory.AgentName(agentID), "the configuration file has it")
	}
	out, err := a.write(ctx, agentID, r.Spec, store.AgentWrite{Request: request.Lasting("CreateAgent", "", r)})
	return &sessionv1.CreateAgentResponse{Agent: out}, err
}

// UpdateAgent makes a new version.
func (a *AgentServer) UpdateAgent(ctx context.Context, r *sessionv1.UpdateAgentRequest) (*sessionv1.UpdateAgentResponse, error) {
	if err := a.Directory.Changeable(r.Name); err != nil {
		return nil, err
	}
	out, err := a.write(ctx, strings.TrimPrefix(r.Name, "agents/"), r.Spec, store.AgentWrite{
		Expected: r.ExpectedVersion, Request: request.Lasting("UpdateAgent", r.Name, r),
	})
	return &sessionv1.UpdateAgentResponse{Agent: out}, err
}

// RollbackAgent makes a new version with the spec of an earlier one. The spec is checked again,
// because the tools and models of that time may be gone.
func (a *AgentServer) RollbackAgent(ctx context.Context, r *sessionv1.RollbackAgentRequest) (*sessionv1.RollbackAgentResponse, error) {
	if err := a.Directory.Changeable(r.Name); err != nil {
		return nil, err
	}
	old, err := a.Store.GetAgent(ctx, principal.Tenant(ctx), r.Name, r.Version)
	if err != nil {
		return nil, a.versionError(ctx, err, r.Name, r.Version)
	}
	spec, err := agent.Unmarshal(old.Spec)
	if err != nil {
		return nil, err
	}
	out, err := a.write(ctx, strings.TrimPrefix(r.Name, "agents/"), spec.ToProto(), store.AgentWrite{
		Expected: r.ExpectedVersion, RestoredFrom: r.Version, Request: request.Lasting("RollbackAgent", r.Name, r),
	})
	return &sessionv1.RollbackAgentResponse{Agent: out}, err
}

// write writes a spec that the directory accepts, and reads the agent at its new version.
func (a *AgentServer) write(ctx context.Context, agentID string, spec *sessionv1.AgentSpec, w store.AgentWrite) (*sessionv1.Agent, error) {
	w.Tenant, w.User = principal.Tenant(ctx), request.User(ctx)
	name, version, err := a.Directory.WriteAgent(ctx, agent.New(agentID, agent.FromProto(spec)), w, twoOfOneName(spec.GetMcpServers())...)
	if err != nil {
		return nil, err
	}
	return a.read(ctx, name, version)
}

// twoOfOneName returns a fault for servers of an agent with the same name: only the first of two gets into its spec.
func twoOfOneName(servers []*commonv1.McpServer) []agent.Fault {
	if err := mcp.CheckProtos(servers); err != nil && mcp.From(servers).Check() == nil {
		return []agent.Fault{{Field: "mcp_servers", Text: err.Error()}}
	}
	return nil
}

// ArchiveAgent archives an agent, or brings it back.
func (a *AgentServer) ArchiveAgent(ctx context.Context, r *sessionv1.ArchiveAgentRequest) (*sessionv1.ArchiveAgentResponse, error) {
	if err := a.Directory.Changeable(r.Name); err != nil {
		return nil, err
	}
	_, err := a.Store.ArchiveAgent(ctx, store.ArchiveAgent{
		Tenant: principal.Tenant(ctx), Name: r.Name, Undo: r.Undo, Request: request.Lasting("ArchiveAgent", r.Name, r),
	})
	if err != nil {
		return nil, refusal.Agent(err, r.Name, r.RequestId)
	}
	out, err := a.read(ctx, r.Name, 0)
	return &sessionv1.ArchiveAgentResponse{Agent: out}, err
}

// GetAgentVersion reads a version.
func (a *AgentServer) GetAgentVersion(
	ctx context.Context, r *sessionv1.GetAgentVersionRequest,
) (*sessionv1.GetAgentVersionResponse, error) {
	name, version, err := directory.SplitVersion(r.Name)
	if err != nil {
		return nil, err // the schema has checked the form
	}
	row, err := a.Store.GetAgent(ctx, principal.Tenant(ctx), name, version)
	if err != nil {
		return nil, a.versionError(ctx, err, name, version)
	}
	out, err := versionProto(row)
	return &sessionv1.GetAgentVersionResponse{Version: out}, err
}

// ListAgentVersions lists a page of versions.
func (a *AgentServer) ListAgentVersions(
	ctx context.Context, r *sessionv1.ListAgentVersionsRequest,
) (*sessionv1.ListAgentVersionsResponse, error) {
	tenant := principal.Tenant(ctx)
	if _, err := a.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: r.Parent}); err != nil {
		return nil, err
	}
	scope := "ListAgentVersions\x00" + tenant + "\x00" + r.Parent
	list := func(before int32, n int) (some []*sessionv1.AgentVersion, _ error) {
		rows, err := a.Store.ListAgentVersions(ctx, tenant, r.Parent, before, n)
		for _, row := range rows {
			v, err := versionProto(row)
			if err != nil {
				return nil, err
			}
			some = append(some, v)
		}
		return some, err
	}
	all, next, err := request.List(scope, r, refusal.Subject{}, (*sessionv1.AgentVersion).GetVersion, list)
	return &sessionv1.ListAgentVersionsResponse{Versions: all, NextPageToken: next}, err
}

func versionProto(row store.AgentRow) (*sessionv1.AgentVersion, error) {
	a, err := directory.AgentOf(row)
	if err != nil {
		return nil, err
	}
	spec := a.Spec.ToProto()
	spec.McpServers = mcp.Show(spec.McpServers)
	return &sessionv1.AgentVersion{
		Name: fmt.Sprintf("%s/versions/%d", row.Name, row.Version), Version: row.Version, Revision: row.Revision, Spec: spec,
		CreateTime: timestamppb.New(row.VersionTime), User: row.User, RestoredFrom: row.RestoredFrom,
	}, nil
}
