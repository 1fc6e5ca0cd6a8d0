package directory

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// MCPServers returns the MCP servers of a session for the caller as the acting user.
func (d *Directory) MCPServers(ctx context.Context, k store.Key, parent string, spec agent.Spec) (mcp.Loaded, error) {
	loaded, err := mcp.Load(ctx, d.Store, k, spec.MCPServers, store.Owner{Tenant: k.Tenant, User: request.User(ctx)})
	return loaded, refusal.Store(err, refusal.Subject{Session: parent})
}

// ToolsOf returns the tools of a session for the caller as the acting user, and what works of its MCP servers. The
// request says what else is wanted: the resources and prompts, or only tools that the rules do not disable.
func (d *Directory) ToolsOf(
	ctx context.Context, k store.Key, parent string, spec agent.Spec, r *toolsv1.ListSessionToolsRequest,
) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error) {
	loaded, err := d.MCPServers(ctx, k, parent, spec)
	if err != nil {
		return nil, nil, err
	}
	call, err := d.OutsideTurns(ctx, k, parent)
	if err != nil {
		return nil, nil, err
	}
	r.Call, r.Servers, r.AllowedTools = call, loaded.Servers, spec.Tools
	tools, servers, err := d.Tools.ListSessionTools(ctx, r)
	return tools, slices.Concat(servers, loaded.Broken), apierr.Forward(err)
}

// OutsideTurns returns the reference by which the tools service knows a session outside of its turns.
func (d *Directory) OutsideTurns(ctx context.Context, k store.Key, parent string) (*commonv1.CallRef, error) {
	place, epoch, err := d.Store.PlaceOf(ctx, k)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, refusal.Store(err, refusal.Subject{Session: parent})
	}
	return &commonv1.CallRef{Session: parent, Epoch: max(epoch, 1), CallId: "tools", Node: place.Node, WorkspaceGeneration: place.Generation}, nil
}

// CheckMCP refuses servers that break a rule, or that have the name of an operator's server, if the tools service can
// be asked for these. A name that it cannot be asked for is the operator's in turns.
func (d *Directory) CheckMCP(ctx context.Context, field string, servers []*commonv1.McpServer) error {
	if len(servers) == 0 {
		return nil
	}
	if err := mcp.CheckProtos(servers); err != nil {
		return refusal.InvalidMCP(field, err.Error())
	}
	asking, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	faults, err := d.Tools.CheckAgents(asking, &toolsv1.CheckAgentsRequest{Agents: []*toolsv1.AgentNeeds{{McpServers: mcp.From(servers).Names()}}})
	if err != nil {
		d.Log.WarnContext(ctx, "cannot ask the tools service for the operator's MCP servers", "error", err)
	}
	for _, f := range faults {
		return refusal.MCPNameTaken(field, f.Message)
	}
	return nil
}

// CheckPermissions refuses rules of a session that the tools service does not understand: its calls would all fail.
func (d *Directory) CheckPermissions(ctx context.Context, field string, rules *commonv1.PermissionRules) error {
	if proto.Size(rules) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	faults, err := d.Tools.CheckAgents(asking, &toolsv1.CheckAgentsRequest{Agents: []*toolsv1.AgentNeeds{{Permissions: rules}}})
	if err != nil {
		if left := ctx.Err(); left != nil {
			return left
		}
		d.Log.WarnContext(ctx, "cannot ask the tools service about the rules of a session", "error", err)
		return refusal.ToolsUnavailable("The session's permissions cannot be checked, because the tools service does not answer. Nothing was created; try again, with the same request id.")
	}
	var wrong []agent.Fault
	for _, f := range faults {
		wrong = append(wrong, agent.Fault{
			Field: field + strings.TrimPrefix(f.Field, "permissions"), Text: strings.TrimPrefix(f.Message, `agent "": `+f.Field+": "),
		})
	}
	return refusal.Permissions(wrong)
}
