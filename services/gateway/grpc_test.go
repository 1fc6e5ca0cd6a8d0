package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/gateway"
	reasons "github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// serveGRPC runs a gateway with a public gRPC listener in front of f, and returns a connection to it and the function
// that stops the gateway.
func serveGRPC(t *testing.T, f *fake, change ...func(*gateway.Config)) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	return serveGRPCAs(t, f, openToAll(t), change...)
}

// serveGRPCAs is serveGRPC for given callers.
func serveGRPCAs(t *testing.T, f *fake, callers *auth.Authenticator, change ...func(*gateway.Config)) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	peers := rpctest.Dial(t, f.register)
	c := gateway.DefaultConfig()
	for _, ch := range change {
		ch(&c)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := gateway.New(t.Context(), c, gateway.Deps{Session: peers, Tools: peers, ServesGRPC: true, Auth: callers, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.DefaultConfig()
	server.Public, server.Grace, server.Auth = "127.0.0.1:0", 5*time.Second, callers
	at, ended := make(chan string, 1), make(chan error, 1)
	server.OnListen = func(_, address string) { at <- address }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { ended <- rpc.Serve(ctx, server, telemetry.Discard(log), nil, s) }()
	conn, err = grpc.NewClient(<-at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
	})
	return conn, stop
}

func TestAUnaryCallIsForwarded(t *testing.T) {
	f := &fake{}
	conn, _ := serveGRPC(t, f)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer fl_ann", "fairlead-token", "evil", "cookie", "a=b", "x-other", "1")
	var header metadata.MD
	want := &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "coder"}, RequestId: "k1"}
	got, err := sessionv1.NewSessionServiceClient(conn).CreateSession(ctx, want, grpc.Header(&header))
	if err != nil || got.GetSession().GetName() != "sessions/s1" || got.GetSession().GetLastSeq() != 1<<60 {
		t.Fatalf("got %v, %v", got, err)
	}
	last, md := f.last()
	if diff := cmp.Diff(proto.Message(want), last, protocmp.Transform()); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if key := header.Get("idempotency-key"); !slices.Equal(key, []string{"k1"}) {
		t.Errorf("idempotency-key %q", key)
	}
	for name, values := range md {
		if strings.Contains(strings.Join(values, " "), "evil") || slices.Contains([]string{"authorization", "cookie", "x-other"}, name) {
			t.Errorf("the service got the client's metadata %s: %q", name, values)
		}
	}
	if tool, err := toolsv1.NewToolServiceClient(conn).GetTool(t.Context(), &toolsv1.GetToolRequest{Name: "tools/Bash"}); err != nil || tool.GetTool().GetName() != "tools/Bash" {
		t.Errorf("tools: %v, %v", tool, err)
	}
}

func TestAnErrorIsForwardedWithItsDetails(t *testing.T) {
	f := &fake{fail: noSuchSession()}
	conn, _ := serveGRPC(t, f)
	client := sessionv1.NewSessionServiceClient(conn)
	_, unary := client.GetSession(t.Context(), &sessionv1.GetSessionRequest{Name: "sessions/s9"})
	st, err := client.StreamEvents(t.Context(), &sessionv1.StreamEventsRequest{Parent: "sessions/s9"})
	if err == nil {
		_, err = st.Recv()
	}
	for shape, err := range map[string]error{"unary": unary, "stream": err} {
		resource, _ := apierr.Detail[*errdetails.ResourceInfo](err)
		if apierr.Code(err) != codes.NotFound || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) || resource.GetResourceName() != "sessions/s9" {
			t.Errorf("%s: %v", shape, err)
		}
	}
	f.fail = errors.New("secret words")
	if _, err := client.GetSession(t.Context(), &sessionv1.GetSessionRequest{Name: "sessions/s9"}); apierr.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("a fault: %v", err)
	}
}

func TestStreamsAreForwardedBothWays(t *testing.T) {
	f := &fake{events: replay(3)}
	conn, _ := serveGRPC(t, f)
	client := sessionv1.NewSessionServiceClient(conn)
	st, err := client.StreamEvents(t.Context(), &sessionv1.StreamEventsRequest{Parent: "sessions/s1", AfterSeq: 1})
	if err != nil {
		t.Fatal(err)
	}
	for seq := int64(2); seq <= 3; seq++ {
		if m, err := st.Recv(); err != nil || m.GetEvent().GetSeq() != seq {
			t.Fatalf("event %d: %v, %v", seq, m, err)
		}
	}
	if _, err := st.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
	both, err := client.Converse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		in := &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Open{Open: &sessionv1.ConverseOpen{Session: "sessions/s1"}}}
		if err := both.Send(in); err != nil {
			t.Fatal(err)
		}
		if m, err := both.Recv(); err != nil || m.GetProgress().GetSeq() != int64(n+1) {
			t.Fatalf("answer %d: %v, %v", n, m, err)
		}
	}
	if err := both.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end of a conversation: %v", err)
	}
}

func TestTheEndOfACallReachesTheService(t *testing.T) {
	began, ended := make(chan time.Time, 2), make(chan error, 2)
	f := &fake{events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		at, _ := st.Context().Deadline()
		began <- at
		<-st.Context().Done()
		ended <- st.Context().Err()
		return st.Context().Err()
	}}
	conn, stop := serveGRPC(t, f)
	open := func(ctx context.Context) eventsClient {
		st, err := sessionv1.NewSessionServiceClient(conn).StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: "sessions/s1"})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	open(ctx)
	if at := <-began; time.Until(at) < 59*time.Minute || time.Until(at) > time.Hour {
		t.Errorf("the service's deadline is %s away", time.Until(at))
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancelled call the service's context ends with %v", err)
	}
	st := open(t.Context())
	<-began
	stop()
	if _, err := st.Recv(); apierr.Reason(err) != apierr.ReasonDraining {
		t.Errorf("a stream of a stopped gateway: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the service's call goes on")
	}
}

type eventsClient = grpc.ServerStreamingClient[sessionv1.StreamEventsResponse]

func TestTheListenerDescribesTheServices(t *testing.T) {
	conn, _ := serveGRPC(t, &fake{})
	st, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	list, err := st.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list.GetListServicesResponse().GetService() {
		if strings.HasPrefix(s.GetName(), "fairlead.") {
			got = append(got, s.GetName())
		}
	}
	want := publicServices()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services for clients (-in the protos +on the listener):\n%s", diff)
	}
	file := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: want[0]}}
	if err := st.Send(file); err != nil {
		t.Fatal(err)
	}
	if r, err := st.Recv(); err != nil || len(r.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("the descriptor of %s: %v, %v", want[0], r, err)
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if h, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v, %v", h, err)
	}
}

// publicServices returns the services in the protos of session and tools that have an RPC for clients.
func publicServices() []string {
	var all []string
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if p := f.Package(); p != "fairlead.session.v1" && p != "fairlead.tools.v1" {
			return true
		}
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				access, _ := proto.GetExtension(s.Methods().Get(j).Options(), commonv1.E_Access).(*commonv1.Access)
				if access.GetRole() < commonv1.Role_ROLE_SERVICE {
					all = append(all, string(s.FullName()))
					break
				}
			}
		}
		return true
	})
	slices.Sort(all)
	return all
}

func TestStreamsOfAnAddressAreLimitedOverGRPC(t *testing.T) {
	f := &fake{events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		<-st.Context().Done()
		return st.Context().Err()
	}}
	conn, _ := serveGRPC(t, f, func(c *gateway.Config) { c.MaxStreamsPerClient = 1 })
	client := sessionv1.NewSessionServiceClient(conn)
	first, err := client.StreamEvents(t.Context(), &sessionv1.StreamEventsRequest{Parent: "sessions/s1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Header(); err != nil {
		t.Fatal(err)
	}
	second, err := client.StreamEvents(t.Context(), &sessionv1.StreamEventsRequest{Parent: "sessions/s1"})
	if err == nil {
		_, err = second.Recv()
	}
	if apierr.Code(err) != codes.ResourceExhausted || apierr.Reason(err) != reasons.ReasonTooManyStreams {
		t.Errorf("the second stream: %v", err)
	}
}
