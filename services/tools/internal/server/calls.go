package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/call"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/operation"
	"github.com/fairlead/fairlead/services/tools/internal/peer"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// Calls serves CallService.
type Calls struct {
	toolsv1.UnimplementedCallServiceServer
	engine     *call.Engine
	operations *operation.Manager
	registry   *registry.Registry
	servers    *mcp.Pool
	known      Known
}

// NewCalls returns the server of CallService.
func NewCalls(e *call.Engine, m *operation.Manager, k Known) *Calls {
	return &Calls{engine: e, operations: m, registry: e.Tools, servers: e.Servers, known: k}
}

// CallTool implements CallService.
func (s *Calls) CallTool(q *toolsv1.CallToolRequest, stream grpc.ServerStreamingServer[toolsv1.CallToolResponse]) error {
	ctx := stream.Context()
	ref, err := refOf(ctx, q.GetCall())
	if err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	err = s.engine.Call(ctx, call.Request{
		Ref: ref, Tool: q.GetTool(), Arguments: q.GetArgumentsJson(), Allowed: q.GetAllowedTools(),
		Policy:  policy.Query{Profile: q.GetProfile(), Mode: q.GetMode(), Filters: q.GetFilters()},
		Servers: q.GetServers(), Approval: q.GetApproval(), Answer: q.GetAnswer(), Forwarded: peer.Forwarded(ctx),
	}, stream.Send)
	return outward(err, ref.CallID)
}

// ReportResult implements CallService.
func (s *Calls) ReportResult(ctx context.Context, q *toolsv1.ReportResultRequest) (*toolsv1.ReportResultResponse, error) {
	ref, err := refOf(ctx, q.GetCall())
	if err != nil {
		return nil, err
	}
	if _, known := toolsv1.CallOutcome_name[int32(q.GetResult().GetOutcome())]; !known || q.GetResult().GetOutcome() == toolsv1.CallOutcome_CALL_OUTCOME_UNSPECIFIED {
		return nil, apierr.New(codes.InvalidArgument, apierr.Domain, apierr.ReasonInvalidRequest,
			"the result says not how the call ended; set its outcome", apierr.Field("result.outcome", "must be one of the outcomes"))
	}
	if err := s.engine.Report(ctx, ref, q.GetResult()); err != nil {
		return nil, outward(err, ref.CallID)
	}
	return &toolsv1.ReportResultResponse{}, nil
}

// CancelCall implements CallService.
func (s *Calls) CancelCall(ctx context.Context, q *toolsv1.CancelCallRequest) (*toolsv1.CancelCallResponse, error) {
	ref, err := refOf(ctx, q.GetCall())
	if err != nil {
		return nil, err
	}
	result, err := s.engine.Cancel(ctx, ref, peer.Forwarded(ctx))
	if err != nil {
		return nil, outward(err, ref.CallID)
	}
	return &toolsv1.CancelCallResponse{Result: result}, nil
}

// FenceSession implements CallService.
func (s *Calls) FenceSession(ctx context.Context, q *toolsv1.FenceSessionRequest) (*toolsv1.FenceSessionResponse, error) {
	ref, err := refOf(ctx, q.GetCall())
	if err != nil {
		return nil, err
	}
	if err := s.engine.Fence(ctx, ref); err != nil {
		return nil, outward(err, ref.CallID)
	}
	return &toolsv1.FenceSessionResponse{}, nil
}

// DeleteSessionCalls implements CallService.
func (s *Calls) DeleteSessionCalls(ctx context.Context, q *toolsv1.DeleteSessionCallsRequest) (*toolsv1.DeleteSessionCallsResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	next := q.GetNextEpoch()
	if next == 0 {
		next = store.NoEpoch
	}
	if err := s.engine.Forget(ctx, tenant, q.GetSession(), next); err != nil {
		return nil, outward(err, q.GetSession())
	}
	s.servers.Forget(tenant, q.GetSession())
	if err := s.operations.Forget(ctx, tenant, q.GetSession()); err != nil {
		return nil, outward(err, q.GetSession())
	}
	return &toolsv1.DeleteSessionCallsResponse{}, nil
}

// refOf takes the tenant from the principal, and the rest from the request.
func refOf(ctx context.Context, c *commonv1.CallRef) (store.Ref, error) {
	tenant, err := tenantOf(ctx)
	return store.Ref{Tenant: tenant, Session: c.GetSession(), Holder: c.GetHolder(), Epoch: c.GetEpoch(), CallID: c.GetCallId(), Node: c.GetNode(), Generation: c.GetWorkspaceGeneration()}, err
}

// tenantOf returns the tenant, which is never empty. Its absence is a
// programming error: the interceptors refuse requests without a principal.
func tenantOf(ctx context.Context) (string, error) {
	if tenant := principal.Tenant(ctx); tenant != "" {
		return tenant, nil
	}
	return "", fmt.Errorf("a request without a principal reached the handler")
}
