package peer

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
)

// CompleteMcpArgument asks a server of the session for what an argument may be.
func (x *MCPServer) CompleteMcpArgument(
	ctx context.Context, r *sessionv1.CompleteMcpArgumentRequest,
) (*sessionv1.CompleteMcpArgumentResponse, error) {
	at, err := x.at(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	completion, err := x.Tools.CompleteMCPArgument(ctx, &toolsv1.CompleteMcpArgumentRequest{At: at, Argument: r.Argument})
	if err != nil {
		return nil, apierr.Forward(err)
	}
	return &sessionv1.CompleteMcpArgumentResponse{Completion: completion}, nil
}

// WatchMcpResource subscribes to a resource of a server of the session.
func (x *MCPServer) WatchMcpResource(
	r *sessionv1.WatchMcpResourceRequest, stream grpc.ServerStreamingServer[sessionv1.WatchMcpResourceResponse],
) error {
	ctx := stream.Context()
	at, err := x.at(ctx, r.Name)
	if err != nil {
		return err
	}
	next, err := x.Tools.WatchMCPResource(ctx, &toolsv1.WatchMcpResourceRequest{At: at, Uri: r.Uri})
	for err == nil {
		if err = next(); err == nil {
			err = stream.Send(&sessionv1.WatchMcpResourceResponse{})
		}
	}
	return apierr.Forward(err)
}

// at returns the server `sessions/{session}/mcp/{server}` for a request to it by the caller as the acting user, under
// the permissions of the session's next turn. The tools service knows the operator's servers.
func (x *MCPServer) at(ctx context.Context, name string) (*toolsv1.McpRequest, error) {
	parent, server, _ := strings.Cut(name, "/mcp/")
	k := request.Key(ctx, parent)
	session, err := x.Store.GetSession(ctx, k)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: parent})
	}
	spec, err := x.Directory.SpecOf(ctx, k.Tenant, session)
	if err != nil {
		return nil, err
	}
	loaded, err := x.Directory.MCPServers(ctx, k, parent, spec)
	if err != nil {
		return nil, err
	}
	for _, s := range loaded.Broken {
		if s.GetName() == server {
			return nil, refusal.InvalidMCP("name", strings.TrimSuffix(s.GetMessage(), "."))
		}
	}
	call, err := x.Directory.OutsideTurns(ctx, k, parent)
	return &toolsv1.McpRequest{
		Call: call, Servers: loaded.Servers, AllowedTools: spec.Tools, Profile: spec.Profile, Mode: session.TurnOptions.GetPermissionMode(),
		Filters: spec.Filters(session.Permissions), Server: server,
	}, err
}
