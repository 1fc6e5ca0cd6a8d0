package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
)

// CompleteMcpArgument implements CallService.
func (s *Calls) CompleteMcpArgument(ctx context.Context, q *toolsv1.CompleteMcpArgumentRequest) (*toolsv1.CompleteMcpArgumentResponse, error) {
	reader := mcp.PromptTool
	if q.GetArgument().GetUriTemplate() != "" {
		reader = mcp.ResourceTool
	}
	at, err := s.target(ctx, q.GetAt(), reader)
	if err != nil {
		return nil, err
	}
	completion, err := s.servers.Complete(ctx, at, q.GetArgument())
	if err != nil {
		return nil, mcpFault(err, "argument")
	}
	return &toolsv1.CompleteMcpArgumentResponse{Completion: completion}, nil
}

// WatchMcpResource implements CallService.
func (s *Calls) WatchMcpResource(q *toolsv1.WatchMcpResourceRequest, stream grpc.ServerStreamingServer[toolsv1.WatchMcpResourceResponse]) error {
	ctx := stream.Context()
	at, err := s.target(ctx, q.GetAt(), mcp.ResourceTool)
	if err != nil {
		return err
	}
	return mcpFault(s.servers.Watch(ctx, at, q.GetUri(), func() error { return stream.Send(&toolsv1.WatchMcpResourceResponse{}) }), "uri")
}

// target returns the server of a request, if the tool that reads what the request is about is not denied.
func (s *Calls) target(ctx context.Context, q *toolsv1.McpRequest, reader string) (mcp.Target, error) {
	ref, err := refOf(ctx, q.GetCall())
	if err != nil {
		return mcp.Target{}, err
	}
	p, _ := principal.From(ctx)
	at := mcp.Target{Caller: mcp.Caller{User: p.User, Ref: ref}, Servers: q.GetServers(), Allowed: q.GetAllowedTools(), Name: q.GetServer()}
	if !slices.Contains(q.GetAllowedTools(), reader) {
		return at, mcpDenied(q.GetServer(), fmt.Sprintf("The agent does not have the tool %s, which this needs: add it to the agent's tools.", reader))
	}
	version, err := s.engine.Store.PermissionVersion(ctx, ref.Tenant)
	if err != nil {
		return at, outward(err, ref.Session)
	}
	decider, err := s.engine.Policies.Policy(ctx, policy.Query{
		Tenant: ref.Tenant, User: p.User, Session: ref.Session, Version: version, Profile: q.GetProfile(), Mode: q.GetMode(), Filters: q.GetFilters(),
	})
	if err != nil {
		return at, outward(err, ref.Session)
	}
	if d := decider.Decide(permission.Request{Tool: reader}); d.Kind == permission.Deny {
		return at, mcpDenied(q.GetServer(), fmt.Sprintf("Calls of %s are denied here (%s), and so is this. Change the permission profile %s or the rules of the agent or session.", reader, d.Rule, q.GetProfile()))
	}
	return at, nil
}

func mcpDenied(server, why string) error {
	return apierr.Of(codes.PermissionDenied, toolsv1.ErrorReason_ERROR_REASON_MCP_DENIED, why, apierr.Resource("fairlead.dev/McpServer", server, "denied"))
}

// errMCPDenied says that a request to a server is denied.
var errMCPDenied = errors.New("the request to the MCP server is denied")

// mcpFault is the public form of what a server, or the way to it, did. field is what the request says to the server.
func mcpFault(err error, field string) error {
	if away, ok := errors.AsType[*mcp.AwayError](err); ok {
		return apierr.Of(codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_UNAVAILABLE,
			away.Error()+" The session's MCP status says what works.", apierr.Precondition("MCP_SERVER", away.Server, away.Why))
	}
	if refused, ok := errors.AsType[*mcp.RefusedError](err); ok {
		if refused.Request {
			return apierr.Of(codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_REFUSED, refused.Error(), apierr.Field(field, refused.Why))
		}
		return apierr.Of(codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_REFUSED, refused.Error(), apierr.Precondition("MCP_SERVER", refused.Server, refused.Why))
	}
	return outward(err, "")
}
