package remote

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Tools is the tools service.
type Tools struct {
	calls      toolsv1.CallServiceClient
	tools      toolsv1.ToolServiceClient
	operations toolsv1.OperationServiceClient
	logins     toolsv1.LoginServiceClient
	profiles   toolsv1.ProfileServiceClient
}

// NewTools returns the tools service behind a connection.
func NewTools(to grpc.ClientConnInterface) *Tools {
	c := rpc.WithErrors(rpc.AsService(to), Error)
	return &Tools{
		calls: toolsv1.NewCallServiceClient(c), tools: toolsv1.NewToolServiceClient(c), operations: toolsv1.NewOperationServiceClient(c),
		logins: toolsv1.NewLoginServiceClient(c), profiles: toolsv1.NewProfileServiceClient(c),
	}
}

// CallTool makes a call, or attaches to it. next returns its pieces, until its io.EOF or the
// end of ctx.
func (t *Tools) CallTool(ctx context.Context, r *toolsv1.CallToolRequest) (next func() (*toolsv1.CallToolResponse, error), err error) {
	stream, err := t.calls.CallTool(ctx, r)
	if err != nil {
		return nil, err
	}
	return stream.Recv, nil
}

// BypassAllowed reports whether the operator allows the mode bypass under a profile.
func (t *Tools) BypassAllowed(ctx context.Context, profile string) (bool, error) {
	_, err := t.profiles.ExplainCall(ctx, &toolsv1.ExplainCallRequest{
		Name: "profiles/" + profile, Tool: "Read", Mode: commonv1.PermissionMode_PERMISSION_MODE_BYPASS,
	})
	if apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_BYPASS_NOT_ALLOWED) {
		return false, nil
	}
	return true, err
}

// CancelCall stops a call. It returns the call's result if the call had one.
func (t *Tools) CancelCall(ctx context.Context, call *commonv1.CallRef) (*toolsv1.CallResult, error) {
	resp, err := t.calls.CancelCall(ctx, &toolsv1.CancelCallRequest{Call: call})
	return resp.GetResult(), err
}

// ReportResult gives a call that was handed to the session its result.
func (t *Tools) ReportResult(ctx context.Context, call *commonv1.CallRef, result *toolsv1.CallResult) error {
	_, err := t.calls.ReportResult(ctx, &toolsv1.ReportResultRequest{Call: call, Result: result})
	return err
}

// FenceSession makes the tools service refuse lower epochs than the call's.
func (t *Tools) FenceSession(ctx context.Context, call *commonv1.CallRef) error {
	_, err := t.calls.FenceSession(ctx, &toolsv1.FenceSessionRequest{Call: call})
	return err
}

// DeleteSessionCalls deletes a session's calls, and refuses epochs before next.
func (t *Tools) DeleteSessionCalls(ctx context.Context, session string, next int64) error {
	_, err := t.calls.DeleteSessionCalls(ctx, &toolsv1.DeleteSessionCallsRequest{Session: session, NextEpoch: next})
	return err
}

// DeleteUserGrants deletes the grants of the acting user.
func (t *Tools) DeleteUserGrants(ctx context.Context) error {
	_, err := t.calls.DeleteUserGrants(ctx, &toolsv1.DeleteUserGrantsRequest{})
	return err
}

// CheckAgents returns what the service lacks of what agents need. It waits for a service that
// cannot be reached.
func (t *Tools) CheckAgents(ctx context.Context, r *toolsv1.CheckAgentsRequest) ([]*toolsv1.AgentFault, error) {
	resp, err := t.calls.CheckAgents(ctx, r, grpc.WaitForReady(true))
	return resp.GetFaults(), err
}

// ListTools returns all tools.
func (t *Tools) ListTools(ctx context.Context) (all []*toolsv1.Tool, err error) {
	for token := ""; ; {
		page, err := t.tools.ListTools(ctx, &toolsv1.ListToolsRequest{PageSize: listed, PageToken: token})
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetTools()...)
		if token = page.GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}

// ListSessionTools returns the tools of a session, and what works of its MCP servers.
func (t *Tools) ListSessionTools(ctx context.Context, r *toolsv1.ListSessionToolsRequest) (all []*toolsv1.Tool, servers []*commonv1.McpServerStatus, err error) {
	for r = proto.CloneOf(r); ; {
		page, err := t.calls.ListSessionTools(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		all, servers = append(all, page.GetTools()...), append(servers, page.GetServers()...)
		if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
			return all, servers, nil
		}
	}
}

// CompleteMCPArgument asks an MCP server for what an argument may be.
func (t *Tools) CompleteMCPArgument(ctx context.Context, r *toolsv1.CompleteMcpArgumentRequest) (*commonv1.McpCompletion, error) {
	resp, err := t.calls.CompleteMcpArgument(ctx, r)
	return resp.GetCompletion(), err
}

// WatchMCPResource subscribes to a resource of an MCP server. next returns when it may have changed; the end of ctx ends
// the subscription.
func (t *Tools) WatchMCPResource(ctx context.Context, r *toolsv1.WatchMcpResourceRequest) (next func() error, err error) {
	stream, err := t.calls.WatchMcpResource(ctx, r)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := stream.Recv()
		return err
	}, nil
}

// BeginLogin begins a login of the acting user to an MCP server.
func (t *Tools) BeginLogin(ctx context.Context, s *commonv1.McpServer) (*toolsv1.BeginLoginResponse, error) {
	return t.logins.BeginLogin(ctx, &toolsv1.BeginLoginRequest{Server: s})
}

// FinishLogin ends a login, and returns the server's name.
func (t *Tools) FinishLogin(ctx context.Context, r *toolsv1.FinishLoginRequest) (server string, err error) {
	resp, err := t.logins.FinishLogin(ctx, r)
	return resp.GetServer(), err
}

// ForgetLogin deletes the acting user's tokens for an MCP server.
func (t *Tools) ForgetLogin(ctx context.Context, s *commonv1.McpServer) error {
	_, err := t.logins.ForgetLogin(ctx, &toolsv1.ForgetLoginRequest{Server: s})
	return err
}

// GetOperation returns an operation.
func (t *Tools) GetOperation(ctx context.Context, name string) (*toolsv1.Operation, error) {
	resp, err := t.operations.GetOperation(ctx, &toolsv1.GetOperationRequest{Name: name})
	return resp.GetOperation(), err
}
