package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Register registers the binding to gRPC. The tenant of a request names the agent.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	a2apb.RegisterA2AServiceServer(r, &binding{server: s})
}

// binding serves the protocol over gRPC. Requests and answers are those of the other bindings, because the messages of
// the protocol have one form in JSON.
type binding struct {
	a2apb.UnimplementedA2AServiceServer
	server *Server
}

// addressed is a request.
type addressed interface {
	proto.Message
	GetTenant() string
}

// call returns the request as one of the other bindings.
func (b *binding) call(ctx context.Context, req addressed) (*call, error) {
	agent := strings.TrimPrefix(req.GetTenant(), "agents/")
	if agent == "" || strings.Contains(agent, "/") {
		return nil, bad("tenant", "is missing or no id: over gRPC it names the agent, such as coder")
	}
	m := req.ProtoReflect()
	m.Clear(m.Descriptor().Fields().ByName("tenant"))
	params, err := protojson.Marshal(req)
	if err != nil {
		return nil, bad("message", "is no JSON: "+err.Error())
	}
	r := (&http.Request{Method: http.MethodPost, URL: &url.URL{}, Header: http.Header{}}).WithContext(ctx)
	md, _ := metadata.FromIncomingContext(ctx)
	for _, name := range []string{"A2A-Version", depthHeader} {
		if values := md.Get(name); len(values) > 0 {
			r.Header.Set(name, values[0])
		}
	}
	if at := md.Get(":authority"); len(at) > 0 {
		r.Host = at[0]
	}
	r.RemoteAddr = rpc.Client(ctx)
	return &call{Server: b.server, r: r, agent: agent, params: params}, nil
}

// serve does an operation, and puts its answer into one of gRPC.
func (b *binding) serve(ctx context.Context, req addressed, do operation, to proto.Message, send func(update) error) error {
	if err := b.answer(ctx, req, do, to, send); err != nil {
		return problem.Forward(err)
	}
	return nil
}

func (b *binding) answer(ctx context.Context, req addressed, do operation, to proto.Message, send func(update) error) error {
	c, err := b.call(ctx, req)
	if err != nil {
		return err
	}
	c.send = send
	release, err := b.server.wire.Acquire(c.r)
	if err != nil {
		return err
	}
	defer release()
	if err := c.checkVersion(); err != nil {
		return err
	}
	answer, err := do(c)
	if err != nil || answer == nil {
		return err
	}
	return convert(answer, to)
}

// convert puts a message of the other bindings into one of gRPC.
func convert(from any, to proto.Message) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, to)
}

// SendMessage implements the service.
func (b *binding) SendMessage(ctx context.Context, req *a2apb.SendMessageRequest) (*a2apb.SendMessageResponse, error) {
	to := &a2apb.SendMessageResponse{}
	return to, b.serve(ctx, req, (*call).sendMessage, to, nil)
}

// GetTask implements the service.
func (b *binding) GetTask(ctx context.Context, req *a2apb.GetTaskRequest) (*a2apb.Task, error) {
	to := &a2apb.Task{}
	return to, b.serve(ctx, req, (*call).get, to, nil)
}

// ListTasks implements the service.
func (b *binding) ListTasks(ctx context.Context, req *a2apb.ListTasksRequest) (*a2apb.ListTasksResponse, error) {
	to := &a2apb.ListTasksResponse{}
	return to, b.serve(ctx, req, (*call).list, to, nil)
}

// CancelTask implements the service.
func (b *binding) CancelTask(ctx context.Context, req *a2apb.CancelTaskRequest) (*a2apb.Task, error) {
	to := &a2apb.Task{}
	return to, b.serve(ctx, req, (*call).cancel, to, nil)
}

// SendStreamingMessage implements the service.
func (b *binding) SendStreamingMessage(req *a2apb.SendMessageRequest, st grpc.ServerStreamingServer[a2apb.StreamResponse]) error {
	return b.serve(st.Context(), req, (*call).sendStreaming, nil, sender(st))
}

// SubscribeToTask implements the service.
func (b *binding) SubscribeToTask(req *a2apb.SubscribeToTaskRequest, st grpc.ServerStreamingServer[a2apb.StreamResponse]) error {
	return b.serve(st.Context(), req, (*call).subscribe, nil, sender(st))
}

// GetExtendedAgentCard implements the service.
func (b *binding) GetExtendedAgentCard(ctx context.Context, req *a2apb.GetExtendedAgentCardRequest) (*a2apb.AgentCard, error) {
	return nil, b.serve(ctx, req, (*call).extendedCard, nil, nil)
}

// CreateTaskPushNotificationConfig implements the service.
func (b *binding) CreateTaskPushNotificationConfig(ctx context.Context, req *a2apb.TaskPushNotificationConfig) (*a2apb.TaskPushNotificationConfig, error) {
	return nil, b.serve(ctx, req, (*call).push, nil, nil)
}

// GetTaskPushNotificationConfig implements the service.
func (b *binding) GetTaskPushNotificationConfig(ctx context.Context, req *a2apb.GetTaskPushNotificationConfigRequest) (*a2apb.TaskPushNotificationConfig, error) {
	return nil, b.serve(ctx, req, (*call).push, nil, nil)
}

// ListTaskPushNotificationConfigs implements the service.
func (b *binding) ListTaskPushNotificationConfigs(ctx context.Context, req *a2apb.ListTaskPushNotificationConfigsRequest) (*a2apb.ListTaskPushNotificationConfigsResponse, error) {
	return nil, b.serve(ctx, req, (*call).push, nil, nil)
}

// DeleteTaskPushNotificationConfig implements the service.
func (b *binding) DeleteTaskPushNotificationConfig(ctx context.Context, req *a2apb.DeleteTaskPushNotificationConfigRequest) (*emptypb.Empty, error) {
	return nil, b.serve(ctx, req, (*call).push, nil, nil)
}

func sender(st grpc.ServerStreamingServer[a2apb.StreamResponse]) func(update) error {
	return func(u update) error {
		to := &a2apb.StreamResponse{}
		if err := convert(u, to); err != nil {
			return err
		}
		return st.Send(to)
	}
}

// feed follows a task over gRPC: from the event with a number, to its end.
func (c *call) feed(e *encoder, after int64) error {
	e.frame = func(dst []byte, v any) ([]byte, error) {
		u, ok := v.(update)
		if !ok {
			return dst, errors.New("a2a: a stream has updates alone")
		}
		return dst, c.send(u)
	}
	f := c.wire.Follow(c.r.Context(), e.session(), after)
	defer f.Close()
	for {
		select {
		case ev, ok := <-f.Events():
			if !ok {
				return f.Err()
			}
			if _, complete, err := e.Event(nil, ev); err != nil || complete {
				return err
			}
		case <-rpc.Draining(c.r.Context()):
			return problem.Stopping()
		}
	}
}
