package gateway_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// fake stands for session and tools. Unary RPCs answer with what little the tests look at; streams do what the test says.
type fake struct {
	sessionv1.UnimplementedSessionServiceServer
	sessionv1.UnimplementedAgentServiceServer
	sessionv1.UnimplementedBudgetServiceServer
	sessionv1.UnimplementedScheduleServiceServer
	sessionv1.UnimplementedWebhookServiceServer
	sessionv1.UnimplementedTriggerServiceServer
	sessionv1.UnimplementedIdentityServiceServer
	sessionv1.UnimplementedCheckpointServiceServer
	sessionv1.UnimplementedFeedbackServiceServer
	toolsv1.UnimplementedToolServiceServer
	toolsv1.UnimplementedOperationServiceServer

	// fail, when set, is the error of every RPC.
	fail error
	// events is what StreamEvents does after it has sent its headers.
	events func(*sessionv1.StreamEventsRequest, grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error
	// turn is what RunTurn does after it has sent its headers.
	turn func(*sessionv1.RunTurnRequest, grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error
	// export is what ExportSession does.
	export func(*sessionv1.ExportSessionRequest, grpc.ServerStreamingServer[sessionv1.ExportSessionResponse]) error

	mu       sync.Mutex
	uploads  []string // the files that ImportSession got whole
	requests []proto.Message
	metadata []metadata.MD
	callers  []principal.Principal
}

func (f *fake) register(s grpc.ServiceRegistrar) {
	sessionv1.RegisterSessionServiceServer(s, f)
	sessionv1.RegisterAgentServiceServer(s, f)
	sessionv1.RegisterBudgetServiceServer(s, f)
	sessionv1.RegisterScheduleServiceServer(s, f)
	sessionv1.RegisterWebhookServiceServer(s, f)
	sessionv1.RegisterTriggerServiceServer(s, f)
	sessionv1.RegisterIdentityServiceServer(s, f)
	sessionv1.RegisterCheckpointServiceServer(s, f)
	sessionv1.RegisterFeedbackServiceServer(s, f)
	toolsv1.RegisterToolServiceServer(s, f)
	toolsv1.RegisterOperationServiceServer(s, f)
}

// note remembers a request.
func (f *fake) note(ctx context.Context, m proto.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	p, _ := principal.From(ctx)
	f.requests, f.metadata, f.callers = append(f.requests, proto.Clone(m)), append(f.metadata, md), append(f.callers, p)
	return f.fail
}

// caller returns the principal of the last request.
func (f *fake) caller() principal.Principal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.callers[len(f.callers)-1]
}

// last returns the last request and its metadata; nil without one.
func (f *fake) last() (proto.Message, metadata.MD) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		return nil, nil
	}
	return f.requests[len(f.requests)-1], f.metadata[len(f.metadata)-1]
}

func (f *fake) CreateSession(ctx context.Context, r *sessionv1.CreateSessionRequest) (*sessionv1.CreateSessionResponse, error) {
	s := &sessionv1.Session{Name: "sessions/s1", Agent: r.GetSession().GetAgent(), LastSeq: 1 << 60}
	return &sessionv1.CreateSessionResponse{Session: s}, f.note(ctx, r)
}

func (f *fake) GetSession(ctx context.Context, r *sessionv1.GetSessionRequest) (*sessionv1.GetSessionResponse, error) {
	return &sessionv1.GetSessionResponse{Session: &sessionv1.Session{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListSessions(ctx context.Context, r *sessionv1.ListSessionsRequest) (*sessionv1.ListSessionsResponse, error) {
	return &sessionv1.ListSessionsResponse{}, f.note(ctx, r)
}

func (f *fake) DeleteSession(ctx context.Context, r *sessionv1.DeleteSessionRequest) (*sessionv1.DeleteSessionResponse, error) {
	return &sessionv1.DeleteSessionResponse{}, f.note(ctx, r)
}

func (f *fake) CreateTurn(ctx context.Context, r *sessionv1.CreateTurnRequest) (*sessionv1.CreateTurnResponse, error) {
	return &sessionv1.CreateTurnResponse{Turn: &sessionv1.Turn{Name: r.GetParent() + "/turns/t1"}}, f.note(ctx, r)
}

func (f *fake) CreateCheckpoint(ctx context.Context, r *sessionv1.CreateCheckpointRequest) (*sessionv1.CreateCheckpointResponse, error) {
	return &sessionv1.CreateCheckpointResponse{Checkpoint: &sessionv1.Checkpoint{Name: r.GetParent() + "/checkpoints/c1", Description: r.GetCheckpoint().GetDescription()}}, f.note(ctx, r)
}

func (f *fake) CreateFeedback(ctx context.Context, r *sessionv1.CreateFeedbackRequest) (*sessionv1.CreateFeedbackResponse, error) {
	return &sessionv1.CreateFeedbackResponse{Feedback: &sessionv1.Feedback{Name: r.GetParent() + "/feedback/f1", Turn: r.GetFeedback().GetTurn()}}, f.note(ctx, r)
}

func (f *fake) ListFeedback(ctx context.Context, r *sessionv1.ListFeedbackRequest) (*sessionv1.ListFeedbackResponse, error) {
	return &sessionv1.ListFeedbackResponse{}, f.note(ctx, r)
}

func (f *fake) GetCheckpoint(ctx context.Context, r *sessionv1.GetCheckpointRequest) (*sessionv1.GetCheckpointResponse, error) {
	return &sessionv1.GetCheckpointResponse{Checkpoint: &sessionv1.Checkpoint{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListCheckpoints(ctx context.Context, r *sessionv1.ListCheckpointsRequest) (*sessionv1.ListCheckpointsResponse, error) {
	return &sessionv1.ListCheckpointsResponse{}, f.note(ctx, r)
}

func (f *fake) RewindSession(ctx context.Context, r *sessionv1.RewindSessionRequest) (*sessionv1.RewindSessionResponse, error) {
	return &sessionv1.RewindSessionResponse{Checkpoint: r.GetCheckpoint()}, f.note(ctx, r)
}

func (f *fake) GetTurn(ctx context.Context, r *sessionv1.GetTurnRequest) (*sessionv1.GetTurnResponse, error) {
	if strings.HasPrefix(r.GetName(), "sessions/s9/") {
		return nil, noSuchSession()
	}
	return &sessionv1.GetTurnResponse{Turn: &sessionv1.Turn{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListTurns(ctx context.Context, r *sessionv1.ListTurnsRequest) (*sessionv1.ListTurnsResponse, error) {
	return &sessionv1.ListTurnsResponse{}, f.note(ctx, r)
}

func (f *fake) ListEvents(ctx context.Context, r *sessionv1.ListEventsRequest) (*sessionv1.ListEventsResponse, error) {
	return &sessionv1.ListEventsResponse{Events: []*sessionv1.Event{textEvent(3, "hi")}}, f.note(ctx, r)
}

func (f *fake) ListMessages(ctx context.Context, r *sessionv1.ListMessagesRequest) (*sessionv1.ListMessagesResponse, error) {
	return &sessionv1.ListMessagesResponse{}, f.note(ctx, r)
}

func (f *fake) InterruptSession(ctx context.Context, r *sessionv1.InterruptSessionRequest) (*sessionv1.InterruptSessionResponse, error) {
	return &sessionv1.InterruptSessionResponse{}, f.note(ctx, r)
}

func (f *fake) ResolveApproval(ctx context.Context, r *sessionv1.ResolveApprovalRequest) (*sessionv1.ResolveApprovalResponse, error) {
	return &sessionv1.ResolveApprovalResponse{}, f.note(ctx, r)
}

func (f *fake) SubmitToolResult(ctx context.Context, r *sessionv1.SubmitToolResultRequest) (*sessionv1.SubmitToolResultResponse, error) {
	return &sessionv1.SubmitToolResultResponse{}, f.note(ctx, r)
}

func (f *fake) GetAgent(ctx context.Context, r *sessionv1.GetAgentRequest) (*sessionv1.GetAgentResponse, error) {
	return &sessionv1.GetAgentResponse{Agent: &sessionv1.Agent{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListBudgets(ctx context.Context, r *sessionv1.ListBudgetsRequest) (*sessionv1.ListBudgetsResponse, error) {
	return &sessionv1.ListBudgetsResponse{}, f.note(ctx, r)
}

func (f *fake) CreateAgent(ctx context.Context, r *sessionv1.CreateAgentRequest) (*sessionv1.CreateAgentResponse, error) {
	return &sessionv1.CreateAgentResponse{}, f.note(ctx, r)
}

func (f *fake) UpdateAgent(ctx context.Context, r *sessionv1.UpdateAgentRequest) (*sessionv1.UpdateAgentResponse, error) {
	return &sessionv1.UpdateAgentResponse{}, f.note(ctx, r)
}

func (f *fake) GetAgentVersion(ctx context.Context, r *sessionv1.GetAgentVersionRequest) (*sessionv1.GetAgentVersionResponse, error) {
	return &sessionv1.GetAgentVersionResponse{}, f.note(ctx, r)
}

func (f *fake) ListAgents(ctx context.Context, r *sessionv1.ListAgentsRequest) (*sessionv1.ListAgentsResponse, error) {
	return &sessionv1.ListAgentsResponse{}, f.note(ctx, r)
}

func (f *fake) GetCapabilities(ctx context.Context, r *sessionv1.GetCapabilitiesRequest) (*sessionv1.GetCapabilitiesResponse, error) {
	return &sessionv1.GetCapabilitiesResponse{Version: "v0", SandboxUnavailable: "away"}, f.note(ctx, r)
}

func (f *fake) GetTool(ctx context.Context, r *toolsv1.GetToolRequest) (*toolsv1.GetToolResponse, error) {
	return &toolsv1.GetToolResponse{Tool: &toolsv1.Tool{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListTools(ctx context.Context, r *toolsv1.ListToolsRequest) (*toolsv1.ListToolsResponse, error) {
	return &toolsv1.ListToolsResponse{}, f.note(ctx, r)
}

func (f *fake) GetOperation(ctx context.Context, r *toolsv1.GetOperationRequest) (*toolsv1.GetOperationResponse, error) {
	return &toolsv1.GetOperationResponse{Operation: &toolsv1.Operation{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListOperations(ctx context.Context, r *toolsv1.ListOperationsRequest) (*toolsv1.ListOperationsResponse, error) {
	return &toolsv1.ListOperationsResponse{}, f.note(ctx, r)
}

func (f *fake) CancelOperation(ctx context.Context, r *toolsv1.CancelOperationRequest) (*toolsv1.CancelOperationResponse, error) {
	return &toolsv1.CancelOperationResponse{Operation: &toolsv1.Operation{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) StreamEvents(r *sessionv1.StreamEventsRequest, st grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error {
	if err := f.note(st.Context(), r); err != nil {
		return err
	}
	if err := st.SendHeader(nil); err != nil {
		return err
	}
	if f.events == nil {
		return nil
	}
	return f.events(r, st)
}

func (f *fake) RunTurn(r *sessionv1.RunTurnRequest, st grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error {
	if err := f.note(st.Context(), r); err != nil {
		return err
	}
	if err := st.SendHeader(nil); err != nil {
		return err
	}
	if f.turn == nil {
		return nil
	}
	return f.turn(r, st)
}

// Converse accepts every input after the first, and sends an event for it.
func (f *fake) Converse(st grpc.BidiStreamingServer[sessionv1.ConverseRequest, sessionv1.ConverseResponse]) error {
	for n := int64(1); ; n++ {
		r, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.note(st.Context(), r); err != nil {
			return err
		}
		if n == 1 {
			if err := st.SendHeader(nil); err != nil {
				return err
			}
		}
		answer := &sessionv1.ConverseResponse{Kind: &sessionv1.ConverseResponse_Event{Event: textEvent(n, "ok")}}
		if r.GetOpen() != nil {
			answer.Kind = &sessionv1.ConverseResponse_Progress{Progress: &sessionv1.Progress{Seq: n}}
		}
		if err := st.Send(answer); err != nil {
			return err
		}
	}
}

func textEvent(seq int64, text string) *sessionv1.Event {
	return &sessionv1.Event{
		FirstSeq: seq, Seq: seq, Turn: "sessions/s1/turns/t1", Step: 1,
		Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: text}},
	}
}

func eventResponse(e *sessionv1.Event) *sessionv1.StreamEventsResponse {
	return &sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: e}}
}

func turnResponse(e *sessionv1.Event) *sessionv1.RunTurnResponse {
	return &sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}}
}

// noSuchSession is what session answers for a session that is not there.
func noSuchSession() error {
	return apierr.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND, "there is no session s9",
		apierr.Resource("fairlead.dev/Session", "sessions/s9", "not found"))
}
