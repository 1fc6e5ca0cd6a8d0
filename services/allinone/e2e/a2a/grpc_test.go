package a2a

import (
	"errors"
	"io"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// dial returns a client of the binding to gRPC.
func (s *server) dial(t *testing.T) a2apb.A2AServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return a2apb.NewA2AServiceClient(conn)
}

func request(id, tenant string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Tenant: tenant, Message: &a2apb.Message{
		MessageId: id, Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hello"}}},
	}}
}

func TestAStreamOverGRPC(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client, ctx := s.dial(t), metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0")
	stream, err := client.SendStreamingMessage(ctx, request("m1", "coder"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	id, state := "", a2apb.TaskState_TASK_STATE_UNSPECIFIED
	for {
		got, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if task := got.GetTask(); task != nil {
			id = task.GetId()
		}
		for _, p := range got.GetArtifactUpdate().GetArtifact().GetParts() {
			text.WriteString(p.GetText())
		}
		if u := got.GetStatusUpdate(); u != nil {
			state = u.GetStatus().GetState()
		}
	}
	if text.String() != "Hello there." || state != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("the stream says %q and %v", text.String(), state)
	}
	task, err := client.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "coder", Id: id})
	if err != nil || task.GetArtifacts()[0].GetParts()[0].GetText() != "Hello there." {
		t.Errorf("the task: %v, %v", task, err)
	}
	again, err := client.SendMessage(ctx, request("m1", "coder"))
	if err != nil || again.GetTask().GetId() != id {
		t.Errorf("the message that came again has the task %v, %v; want %s", again, err, id)
	}
	all, err := client.ListTasks(ctx, &a2apb.ListTasksRequest{Tenant: "coder"})
	if err != nil || all.GetTotalSize() != 1 || all.GetTasks()[0].GetId() != id {
		t.Errorf("the tasks: %v, %v", all, err)
	}
}

func TestErrorsOverGRPC(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client := s.dial(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0")
	_, none := client.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "coder", Id: "s.t"})
	_, unnamed := client.SendMessage(ctx, request("m1", ""))
	_, old := client.SendMessage(t.Context(), request("m1", "coder"))
	_, push := client.CreateTaskPushNotificationConfig(ctx, &a2apb.TaskPushNotificationConfig{Tenant: "coder", TaskId: "s.t", Url: "https://example.com"})
	_, card := client.GetExtendedAgentCard(ctx, &a2apb.GetExtendedAgentCardRequest{Tenant: "coder"})
	st, _ := client.SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Tenant: "coder", Id: "s.t"})
	_, stream := st.Recv()
	for what, c := range map[string]struct {
		err    error
		code   codes.Code
		reason string
	}{
		"a task that is not there":          {none, codes.NotFound, "TASK_NOT_FOUND"},
		"a stream of one that is not there": {stream, codes.NotFound, "TASK_NOT_FOUND"},
		"no agent":                          {unnamed, codes.InvalidArgument, "BAD_PARAMETER"},
		"no version":                        {old, codes.FailedPrecondition, "VERSION_NOT_SUPPORTED"},
		"push notifications":                {push, codes.FailedPrecondition, "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		"an extended card":                  {card, codes.FailedPrecondition, "UNSUPPORTED_OPERATION"},
	} {
		info, _ := apierr.Detail[*errdetails.ErrorInfo](c.err)
		if status.Code(c.err) != c.code || info.GetReason() != c.reason {
			t.Errorf("%s: %v (%s)", what, c.err, info.GetReason())
		}
	}
}

func TestATaskOverGRPCIsItsCallersOwn(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	client := s.dial(t)
	as := func(user string) []string {
		return []string{"a2a-version", "1.0", "authorization", "Bearer " + s.Keys[user]}
	}
	made, err := client.SendMessage(metadata.AppendToOutgoingContext(t.Context(), as("ann")...), request("m1", "coder"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.GetTask(metadata.AppendToOutgoingContext(t.Context(), as("bob")...), &a2apb.GetTaskRequest{Tenant: "coder", Id: made.GetTask().GetId()})
	if status.Code(err) != codes.NotFound {
		t.Errorf("the task of another user: %v", err)
	}
	_, err = client.GetTask(metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0"), &a2apb.GetTaskRequest{Tenant: "coder", Id: made.GetTask().GetId()})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call without a key: %v", err)
	}
}
