package peer

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
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// MCPServer implements McpService.
type MCPServer struct {
	sessionv1.UnimplementedMcpServiceServer
	*Config
}

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
	spec, err := x.Directory.Pinned(ctx, k, parent)
	if err != nil {
		return nil, err
	}
	_, servers, err := x.Directory.ToolsOf(ctx, k, parent, spec, &toolsv1.ListSessionToolsRequest{Contents: true})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(servers, func(a, b *commonv1.McpServerStatus) int { return strings.Compare(a.Name, b.Name) })
	return &sessionv1.GetMcpStatusResponse{Status: &sessionv1.McpStatus{Name: r.Name, Servers: servers}}, nil
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
		return nil, refusal.InvalidMCP("server.name", fmt.Sprintf("the name of the server is %q, and the resource's is %q", server.Name, name))
	}
	if err := x.Directory.CheckMCP(ctx, "server", []*commonv1.McpServer{server}); err != nil {
		return nil, err
	}
	set, err := x.Store.SetMCPServer(ctx, o, server, request.Lasting("SetUserMcpServer", r.Name, r))
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
	all, err := x.Store.UserMCPServers(ctx, o)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	for _, s := range all {
		if s.GetName() == name {
			return &sessionv1.GetUserMcpServerResponse{McpServer: mcpToProto(o, s)}, nil
		}
	}
	return nil, refusal.MCPNotFound(r.Name)
}

// ListUserMcpServers lists a page of the caller's servers.
func (x *MCPServer) ListUserMcpServers(
	ctx context.Context, r *sessionv1.ListUserMcpServersRequest,
) (*sessionv1.ListUserMcpServersResponse, error) {
	o, _, err := mcpOwner(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	set, err := x.Store.UserMCPServers(ctx, o)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	list := func(after string, n int) (some []*sessionv1.UserMcpServer, _ error) {
		for _, s := range set {
			if s.GetName() > after && len(some) < n {
				some = append(some, mcpToProto(o, s))
			}
		}
		return some, nil
	}
	all, next, err := request.List("ListUserMcpServers\x00"+o.Tenant+"\x00"+o.User, r, refusal.Subject{}, request.ByID, list)
	return &sessionv1.ListUserMcpServersResponse{McpServers: all, NextPageToken: next}, err
}

// DeleteUserMcpServer deletes a server of the caller's.
func (x *MCPServer) DeleteUserMcpServer(
	ctx context.Context, r *sessionv1.DeleteUserMcpServerRequest,
) (*sessionv1.DeleteUserMcpServerResponse, error) {
	o, name, err := mcpOwner(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	err = x.Store.DeleteMCPServer(ctx, o, name, request.Lasting("DeleteUserMcpServer", r.Name, r))
	if errors.Is(err, store.ErrNotFound) {
		return nil, refusal.MCPNotFound(r.Name)
	}
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	return &sessionv1.DeleteUserMcpServerResponse{}, nil
}
