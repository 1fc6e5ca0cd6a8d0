package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// checkPatience bounds the wait for the tools service, which knows the names of tools and
// profiles.
const checkPatience = 5 * time.Second

// CreateAgent creates an agent.
func (a *AgentServer) CreateAgent(ctx context.Context, r *sessionv1.CreateAgentRequest) (*sessionv1.CreateAgentResponse, error) {
	agentID := r.AgentId
	if agentID == "" {
		agentID = "a" + id.New() // a name begins with a letter
	}
	if _, taken := a.s.Agents.Get(agentID); taken {
		return nil, agentExists(agentName(agentID), "the configuration file has it")
	}
	out, err := a.write(ctx, agentID, r.Spec, store.AgentWrite{Request: keepForADay(request("CreateAgent", "", r.RequestId, r))})
	return &sessionv1.CreateAgentResponse{Agent: out}, err
}

// UpdateAgent makes a new version.
func (a *AgentServer) UpdateAgent(ctx context.Context, r *sessionv1.UpdateAgentRequest) (*sessionv1.UpdateAgentResponse, error) {
	if err := a.writable(r.Name); err != nil {
		return nil, err
	}
	out, err := a.write(ctx, strings.TrimPrefix(r.Name, "agents/"), r.Spec, store.AgentWrite{
		Expected: r.ExpectedVersion, Request: keepForADay(request("UpdateAgent", r.Name, r.RequestId, r)),
	})
	return &sessionv1.UpdateAgentResponse{Agent: out}, err
}

// RollbackAgent makes a new version with the spec of an earlier one. The spec is checked again,
// because the tools and models of that time may be gone.
func (a *AgentServer) RollbackAgent(ctx context.Context, r *sessionv1.RollbackAgentRequest) (*sessionv1.RollbackAgentResponse, error) {
	if err := a.writable(r.Name); err != nil {
		return nil, err
	}
	old, err := a.s.Store.GetAgent(ctx, principal.Tenant(ctx), r.Name, r.Version)
	if err != nil {
		return nil, a.versionError(ctx, err, r.Name, r.Version)
	}
	spec, err := agent.Unmarshal(old.Spec)
	if err != nil {
		return nil, err
	}
	out, err := a.write(ctx, strings.TrimPrefix(r.Name, "agents/"), spec.ToProto(), store.AgentWrite{
		Expected: r.ExpectedVersion, RestoredFrom: r.Version, Request: keepForADay(request("RollbackAgent", r.Name, r.RequestId, r)),
	})
	return &sessionv1.RollbackAgentResponse{Agent: out}, err
}

// write checks a spec, writes it, and reads the agent at its new version.
func (a *AgentServer) write(ctx context.Context, agentID string, spec *sessionv1.AgentSpec, w store.AgentWrite) (*sessionv1.Agent, error) {
	made := agent.New(agentID, agent.FromProto(spec))
	if err := a.check(ctx, made, twoOfOneName(spec.GetMcpServers())...); err != nil {
		return nil, err
	}
	w.Tenant, w.User = principal.Tenant(ctx), user(ctx)
	w.AgentRevision = store.AgentRevision{Name: made.Name(), Revision: made.Revision, Spec: made.Spec.Marshal()}
	answer, err := a.s.Store.WriteAgent(ctx, w)
	if errors.Is(err, store.ErrConflict) {
		return nil, versionConflict(ctx, a.s.Store, made.Name(), w.Expected, agentError)
	}
	if err != nil {
		return nil, agentError(err, made.Name(), w.Request.ID)
	}
	name, version, err := splitVersion(answer.Value)
	if err != nil {
		return nil, err
	}
	return a.read(ctx, name, version)
}

// splitVersion splits `agents/{agent}/versions/{version}`.
func splitVersion(name string) (agent string, version int32, _ error) {
	agent, number, _ := strings.Cut(name, "/versions/")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return "", 0, fmt.Errorf("the version of an agent %q: %w", name, err)
	}
	return agent, int32(n), nil
}

// check refuses a spec that breaks a rule of configured agents. It reports every fault at once.
func (a *AgentServer) check(ctx context.Context, made agent.Agent, faults ...agent.Fault) error {
	faults = slices.Concat(faults, made.Spec.Faults(), a.s.ModelFaults(ctx, made.Spec))
	if name := made.Spec.Environment; name != "" {
		_, err := a.s.Store.GetAgent(ctx, principal.Tenant(ctx), name, 0)
		if errors.Is(err, store.ErrNotFound) {
			faults = append(faults, agent.Fault{Field: "environment", Text: "there is no " + name})
		} else if err != nil {
			return storeError(err, subject{})
		}
	}
	for _, sub := range made.Spec.Subagents {
		fault, err := a.subagentFault(ctx, sub)
		if err != nil {
			return err
		}
		faults = append(faults, fault...)
	}
	asking, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	missing, err := a.s.Tools.CheckAgents(asking, &toolsv1.CheckAgentsRequest{
		Agents: []*toolsv1.AgentNeeds{made.Needs()},
	})
	if err != nil {
		if left := ctx.Err(); left != nil {
			return left
		}
		a.s.Log.WarnContext(ctx, "cannot ask the tools service about an agent", "agent", made.ID, "error", err)
		return fail(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The agent's tools and profile cannot be checked, because the tools service does not answer. Nothing was changed; try again, with the same request id.", apierr.RetryAfter(time.Second))
	}
	for _, f := range missing {
		faults = append(faults, agent.Fault{Field: f.Field, Text: f.Message})
	}
	return invalidSpec(faults)
}

// subagentFault reports a subagent's agent that does not exist.
func (a *AgentServer) subagentFault(ctx context.Context, sub agent.Subagent) ([]agent.Fault, error) {
	if _, configured := a.s.Agents.Get(sub.Agent); sub.Agent == "" || configured {
		return nil, nil
	}
	_, err := a.s.Store.GetAgent(ctx, principal.Tenant(ctx), sub.Agent, 0)
	if errors.Is(err, store.ErrNotFound) {
		return []agent.Fault{{Field: "subagents", Text: fmt.Sprintf("subagent %q: there is no %s", sub.Name, sub.Agent)}}, nil
	}
	return nil, storeError(err, subject{})
}

// invalidSpec returns an error that names the field of each fault; nil without a fault.
func invalidSpec(faults []agent.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	var texts []string
	var details []apierr.Option
	for _, f := range faults {
		texts = append(texts, "spec."+f.Field+": "+f.Text)
		details = append(details, apierr.Field("spec."+f.Field, f.Text))
	}
	return fail(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC,
		"The spec breaks a rule, and nothing was changed. "+strings.Join(texts, "; ")+".", details...)
}

// writable refuses to change an agent of the configuration.
func (a *AgentServer) writable(name string) error {
	if _, ok := a.s.Agents.Get(name); !ok {
		return nil
	}
	return fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_READ_ONLY,
		fmt.Sprintf("%s is an agent of the configuration file, which the API does not change. Create an agent with another agent_id, or change the file.", name),
		apierr.Precondition("AGENT", name, "read-only"))
}

// ArchiveAgent archives an agent, or brings it back.
func (a *AgentServer) ArchiveAgent(ctx context.Context, r *sessionv1.ArchiveAgentRequest) (*sessionv1.ArchiveAgentResponse, error) {
	if err := a.writable(r.Name); err != nil {
		return nil, err
	}
	_, err := a.s.Store.ArchiveAgent(ctx, store.ArchiveAgent{
		Tenant: principal.Tenant(ctx), Name: r.Name, Undo: r.Undo, Request: keepForADay(request("ArchiveAgent", r.Name, r.RequestId, r)),
	})
	if err != nil {
		return nil, agentError(err, r.Name, r.RequestId)
	}
	out, err := a.read(ctx, r.Name, 0)
	return &sessionv1.ArchiveAgentResponse{Agent: out}, err
}

// GetAgentVersion reads a version.
func (a *AgentServer) GetAgentVersion(ctx context.Context, r *sessionv1.GetAgentVersionRequest) (*sessionv1.GetAgentVersionResponse, error) {
	name, version, err := splitVersion(r.Name)
	if err != nil {
		return nil, err // the schema has checked the form
	}
	row, err := a.s.Store.GetAgent(ctx, principal.Tenant(ctx), name, version)
	if err != nil {
		return nil, a.versionError(ctx, err, name, version)
	}
	out, err := versionProto(row)
	return &sessionv1.GetAgentVersionResponse{Version: out}, err
}

// ListAgentVersions lists a page of versions.
func (a *AgentServer) ListAgentVersions(ctx context.Context, r *sessionv1.ListAgentVersionsRequest) (*sessionv1.ListAgentVersionsResponse, error) {
	tenant := principal.Tenant(ctx)
	if _, err := a.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: r.Parent}); err != nil {
		return nil, err
	}
	scope := "ListAgentVersions\x00" + tenant + "\x00" + r.Parent
	var before int32
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &before); err != nil {
			return nil, storeError(err, subject{})
		}
	}
	size := page.Size(r.PageSize, 50, 1000)
	versions, more, err := page.Fill(size, func(last *sessionv1.AgentVersion, n int) ([]*sessionv1.AgentVersion, error) {
		if last != nil {
			before = last.Version
		}
		rows, err := a.s.Store.ListAgentVersions(ctx, tenant, r.Parent, before, n)
		if err != nil {
			return nil, err
		}
		return versionProtos(rows)
	})
	if err != nil {
		return nil, storeError(err, subject{})
	}
	resp := &sessionv1.ListAgentVersionsResponse{Versions: versions}
	if more {
		resp.NextPageToken = page.Encode(scope, versions[len(versions)-1].Version)
	}
	return resp, nil
}

func versionProtos(rows []store.AgentRow) (all []*sessionv1.AgentVersion, _ error) {
	for _, row := range rows {
		v, err := versionProto(row)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func versionProto(row store.AgentRow) (*sessionv1.AgentVersion, error) {
	a, err := agentOf(row)
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
