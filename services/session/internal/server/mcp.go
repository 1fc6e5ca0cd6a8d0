package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// MCPServer implements McpService.
type MCPServer struct {
	sessionv1.UnimplementedMcpServiceServer
	s *Server
}

// MCPService returns the server of McpService.
func (s *Server) MCPService() *MCPServer { return &MCPServer{s: s} }

// mcpOwner returns the caller, and the name of the server that a request names.
func mcpOwner(ctx context.Context, resource string) (store.Owner, string, error) {
	parent, name, _ := strings.Cut(resource, "/mcpServers/")
	o := store.Owner{Tenant: request.Key(ctx, "").Tenant, User: request.User(ctx)}
	if own := "users/" + o.User; parent != own && parent != "users/me" {
		return o, name, refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_OTHER_USER,
			"You may see and set only your own MCP servers, which are "+own+"/mcpServers.", apierr.Resource("fairlead.dev/UserMcpServer", parent, "another user's"))
	}
	return o, name, nil
}

// GetMcpStatus reads what works of a session's servers.
func (x *MCPServer) GetMcpStatus(ctx context.Context, r *sessionv1.GetMcpStatusRequest) (*sessionv1.GetMcpStatusResponse, error) {
	parent := strings.TrimSuffix(r.Name, "/mcp")
	k := request.Key(ctx, parent)
	spec, err := x.s.Directory.Pinned(ctx, k, parent)
	if err != nil {
		return nil, err
	}
	_, servers, err := x.s.listTools(ctx, k, parent, spec, &toolsv1.ListSessionToolsRequest{Contents: true})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(servers, func(a, b *commonv1.McpServerStatus) int { return strings.Compare(a.Name, b.Name) })
	return &sessionv1.GetMcpStatusResponse{Status: &sessionv1.McpStatus{Name: r.Name, Servers: servers}}, nil
}

// listTools returns the tools of a session for the caller as the acting user, and what works of its MCP servers. The
// request says what else is wanted: the resources and prompts, or only tools that the rules do not disable.
func (c *Config) listTools(
	ctx context.Context, k store.Key, parent string, spec agent.Spec, r *toolsv1.ListSessionToolsRequest,
) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error) {
	loaded, err := mcp.Load(ctx, c.Store, k, spec.MCPServers, store.Owner{Tenant: k.Tenant, User: request.User(ctx)})
	if err != nil {
		return nil, nil, refusal.Store(err, refusal.Subject{Session: parent})
	}
	call, err := c.noCall(ctx, k, parent)
	if err != nil {
		return nil, nil, err
	}
	r.Call, r.Servers, r.AllowedTools = call, loaded.Servers, spec.Tools
	tools, servers, err := c.Tools.ListSessionTools(ctx, r)
	return tools, slices.Concat(servers, loaded.Broken), apierr.Forward(err)
}

// noCall tells the tools service of a session outside of its turns.
func (c *Config) noCall(ctx context.Context, k store.Key, parent string) (*commonv1.CallRef, error) {
	place, epoch, err := c.Store.PlaceOf(ctx, k)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, refusal.Store(err, refusal.Subject{Session: parent})
	}
	return &commonv1.CallRef{Session: parent, Epoch: max(epoch, 1), CallId: "tools", Node: place.Node, WorkspaceGeneration: place.Generation}, nil
}

// SetUserMcpServer sets a server of the caller's.
func (x *MCPServer) SetUserMcpServer(
	ctx context.Context, r *sessionv1.SetUserMcpServerRequest,
) (*sessionv1.SetUserMcpServerResponse, error) {
	o, name, err := mcpOwner(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	server := proto.CloneOf(r.Server)
	if server.Name != name {
		return nil, invalidMCP("server.name", fmt.Sprintf("the name of the server is %q, and the resource's is %q", server.Name, name))
	}
	if err := x.s.checkMCP(ctx, "server", []*commonv1.McpServer{server}); err != nil {
		return nil, err
	}
	set, err := x.s.Store.SetMCPServer(ctx, o, server, request.Lasting("SetUserMcpServer", r.Name, r))
	switch {
	case errors.Is(err, store.ErrTooMany):
		return nil, refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("A user may have %d MCP servers, and %d bytes of them together. Delete one first.", store.MaxMCPServers, store.MaxMCPServerBytes),
			apierr.Quota("users/"+o.User, "MCP servers"))
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	return &sessionv1.SetUserMcpServerResponse{McpServer: mcpToProto(o, set)}, nil
}

func mcpToProto(o store.Owner, s store.MCPServer) *sessionv1.UserMcpServer {
	out := &sessionv1.UserMcpServer{Name: "users/" + o.User + "/mcpServers/" + s.GetName()}
	if !s.Time.IsZero() { // otherwise it was deleted since
		out.Server, out.UpdateTime = mcp.Show([]*commonv1.McpServer{s.McpServer})[0], timestamppb.New(s.Time)
	}
	return out
}

// GetUserMcpServer reads a server of the caller's.
func (x *MCPServer) GetUserMcpServer(
	ctx context.Context, r *sessionv1.GetUserMcpServerRequest,
) (*sessionv1.GetUserMcpServerResponse, error) {
	o, name, err := mcpOwner(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	all, err := x.s.Store.UserMCPServers(ctx, o)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	for _, s := range all {
		if s.GetName() == name {
			return &sessionv1.GetUserMcpServerResponse{McpServer: mcpToProto(o, s)}, nil
		}
	}
	return nil, mcpNotFound(r.Name)
}

// ListUserMcpServers lists a page of the caller's servers.
func (x *MCPServer) ListUserMcpServers(
	ctx context.Context, r *sessionv1.ListUserMcpServersRequest,
) (*sessionv1.ListUserMcpServersResponse, error) {
	o, _, err := mcpOwner(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	scope := "ListUserMcpServers\x00" + o.Tenant + "\x00" + o.User
	after := ""
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &after); err != nil {
			return nil, refusal.Store(err, refusal.Subject{})
		}
	}
	all, err := x.s.Store.UserMCPServers(ctx, o)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	size, resp := page.Size(r.PageSize, 50, 1000), &sessionv1.ListUserMcpServersResponse{}
	for _, s := range all { // they are few, and small together: see store.MaxMCPServerBytes
		if s.GetName() <= after {
			continue
		}
		if len(resp.McpServers) == size {
			resp.NextPageToken = page.Encode(scope, after)
			break
		}
		after = s.GetName()
		resp.McpServers = append(resp.McpServers, mcpToProto(o, s))
	}
	return resp, nil
}

// DeleteUserMcpServer deletes a server of the caller's.
func (x *MCPServer) DeleteUserMcpServer(
	ctx context.Context, r *sessionv1.DeleteUserMcpServerRequest,
) (*sessionv1.DeleteUserMcpServerResponse, error) {
	o, name, err := mcpOwner(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	err = x.s.Store.DeleteMCPServer(ctx, o, name, request.Lasting("DeleteUserMcpServer", r.Name, r))
	if errors.Is(err, store.ErrNotFound) {
		return nil, mcpNotFound(r.Name)
	}
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	return &sessionv1.DeleteUserMcpServerResponse{}, nil
}

// checkMCP refuses servers that break a rule, or that have the name of an operator's server, if the tools service can
// be asked for these. A name that it cannot be asked for is the operator's in turns.
func (c *Config) checkMCP(ctx context.Context, field string, servers []*commonv1.McpServer) error {
	if len(servers) == 0 {
		return nil
	}
	if err := mcp.CheckProtos(servers); err != nil {
		return invalidMCP(field, err.Error())
	}
	asking, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	faults, err := c.Tools.CheckAgents(asking, &toolsv1.CheckAgentsRequest{Agents: []*toolsv1.AgentNeeds{{McpServers: mcp.From(servers).Names()}}})
	if err != nil {
		c.Log.WarnContext(ctx, "cannot ask the tools service for the operator's MCP servers", "error", err)
	}
	for _, f := range faults {
		return refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_MCP_NAME_TAKEN, f.Message, apierr.Field(field, "the operator has a server of this name"))
	}
	return nil
}

func invalidMCP(field, why string) error {
	return refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_MCP_SERVER,
		"The MCP server cannot be set up so: "+why+".", apierr.Field(field, why))
}

func mcpNotFound(name string) error {
	return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_MCP_SERVER_NOT_FOUND,
		"There is no MCP server "+name+". List your servers to see which there are.", apierr.Resource("fairlead.dev/UserMcpServer", name, "not found"))
}
