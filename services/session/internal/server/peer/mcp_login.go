package peer

import (
	"context"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
)

// LoginMcpServer begins a login of the caller.
func (x *MCPServer) LoginMcpServer(ctx context.Context, r *sessionv1.LoginMcpServerRequest) (*sessionv1.LoginMcpServerResponse, error) {
	s, err := x.named(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	begun, err := x.Tools.BeginLogin(ctx, s)
	if err != nil {
		return nil, apierr.Forward(err)
	}
	return &sessionv1.LoginMcpServerResponse{AuthorizationUrl: begun.AuthorizationUrl, ExpireTime: begun.ExpireTime}, nil
}

// LogoutMcpServer deletes the caller's tokens.
func (x *MCPServer) LogoutMcpServer(ctx context.Context, r *sessionv1.LogoutMcpServerRequest) (*sessionv1.LogoutMcpServerResponse, error) {
	s, err := x.named(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	return &sessionv1.LogoutMcpServerResponse{}, apierr.Forward(x.Tools.ForgetLogin(ctx, s))
}

// named returns the server `sessions/{session}/mcp/{server}`, for the caller as the acting user.
func (x *MCPServer) named(ctx context.Context, name string) (*commonv1.McpServer, error) {
	parent, server, _ := strings.Cut(name, "/mcp/")
	k := request.Key(ctx, parent)
	spec, err := x.Directory.Pinned(ctx, k, parent)
	if err != nil {
		return nil, err
	}
	loaded, err := x.Directory.MCPServers(ctx, k, parent, spec)
	if err != nil {
		return nil, err
	}
	for _, s := range loaded.Servers {
		if s.GetName() == server {
			return s, nil
		}
	}
	for _, s := range loaded.Broken {
		if s.GetName() == server {
			return nil, refusal.InvalidMCP("name", strings.TrimSuffix(s.GetMessage(), "."))
		}
	}
	return nil, refusal.MCPNotFound(name)
}

// FinishMcpLogin takes what an authorization server sends with a browser. The caller has no credential: the state is
// the secret of one login, which has its user.
func (x *MCPServer) FinishMcpLogin(ctx context.Context, r *sessionv1.FinishMcpLoginRequest) (*sessionv1.FinishMcpLoginResponse, error) {
	ctx = principal.With(ctx, principal.Service("default", "default"))
	server, err := x.Tools.FinishLogin(ctx, &toolsv1.FinishLoginRequest{State: r.State, Code: r.Code, Iss: r.Iss, Error: r.Error})
	if err != nil {
		return nil, apierr.Forward(err)
	}
	return &sessionv1.FinishMcpLoginResponse{Server: server, Message: "You are logged in to the MCP server " + server + ". You can close this page."}, nil
}
