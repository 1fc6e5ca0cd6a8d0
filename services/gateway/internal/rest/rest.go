// Package rest is the REST interface: grpc-gateway's translation, with the HTTP parts around it.
//
// The form of a request is checked here (query, media type, idempotency key, body limit), and then either a stream or
// grpc-gateway answers. No header of a client reaches a service: metadata between peers has the
// principal, and only the gateway may set it.
package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/route"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
)

// Config configures the limits of the REST interface.
type Config struct {
	Stream      stream.Config
	MaxBody     int64         // bytes, of requests that carry content
	BodyTimeout time.Duration // for a body to arrive
	Timeout     time.Duration // of a request that is not a stream
}

// Deps has the dependencies of the REST interface.
type Deps struct {
	Session, Tools grpc.ClientConnInterface
	Streams        *limit.Streams
	Shared         stream.Shared
	Log            *slog.Logger
}

// Server is the REST interface.
type Server struct {
	door.Problems
	Config
	table  *route.Table
	routes map[protoreflect.FullName]*route.Route
	log    *slog.Logger
	stream *stream.Server
	mux    *runtime.ServeMux
}

// New returns the REST interface. It starts nothing; ctx is used only during the call.
func New(ctx context.Context, cfg Config, d Deps) (*Server, error) {
	s := &Server{Config: cfg, log: d.Log, routes: map[protoreflect.FullName]*route.Route{}}
	if err := s.readRoutes(); err != nil {
		return nil, err
	}
	session, tools := keyed{d.Session}, keyed{d.Tools}
	var err error
	if s.stream, err = stream.NewServer(cfg.Stream, session, d.Streams, d.Shared, d.Log); err != nil {
		return nil, err
	}
	s.mux = s.newMux()
	for _, register := range []registration{
		with(sessionv1.RegisterSessionServiceHandlerClient, sessionv1.NewSessionServiceClient(session)),
		with(sessionv1.RegisterAgentServiceHandlerClient, sessionv1.NewAgentServiceClient(session)),
		with(sessionv1.RegisterBudgetServiceHandlerClient, sessionv1.NewBudgetServiceClient(session)),
		with(sessionv1.RegisterScheduleServiceHandlerClient, sessionv1.NewScheduleServiceClient(session)),
		with(sessionv1.RegisterRepositoryServiceHandlerClient, sessionv1.NewRepositoryServiceClient(session)),
		with(sessionv1.RegisterFileServiceHandlerClient, sessionv1.NewFileServiceClient(session)),
		with(sessionv1.RegisterSessionFileServiceHandlerClient, sessionv1.NewSessionFileServiceClient(session)),
		with(sessionv1.RegisterCheckpointServiceHandlerClient, sessionv1.NewCheckpointServiceClient(session)),
		with(sessionv1.RegisterFeedbackServiceHandlerClient, sessionv1.NewFeedbackServiceClient(session)),
		with(sessionv1.RegisterWebhookServiceHandlerClient, sessionv1.NewWebhookServiceClient(session)),
		with(sessionv1.RegisterTriggerServiceHandlerClient, sessionv1.NewTriggerServiceClient(session)),
		with(sessionv1.RegisterUserServiceHandlerClient, sessionv1.NewUserServiceClient(session)),
		with(sessionv1.RegisterMcpServiceHandlerClient, sessionv1.NewMcpServiceClient(session)),
		with(sessionv1.RegisterEnvironmentServiceHandlerClient, sessionv1.NewEnvironmentServiceClient(session)),
		with(sessionv1.RegisterModelServiceHandlerClient, sessionv1.NewModelServiceClient(session)),
		with(sessionv1.RegisterSkillServiceHandlerClient, sessionv1.NewSkillServiceClient(session)),
		with(sessionv1.RegisterIdentityServiceHandlerClient, sessionv1.NewIdentityServiceClient(session)),
		with(sessionv1.RegisterAuditServiceHandlerClient, sessionv1.NewAuditServiceClient(session)),
		with(sessionv1.RegisterSessionToolServiceHandlerClient, sessionv1.NewSessionToolServiceClient(session)),
		with(toolsv1.RegisterToolServiceHandlerClient, toolsv1.NewToolServiceClient(tools)),
		with(toolsv1.RegisterOperationServiceHandlerClient, toolsv1.NewOperationServiceClient(tools)),
		with(toolsv1.RegisterProfileServiceHandlerClient, toolsv1.NewProfileServiceClient(tools)),
		with(toolsv1.RegisterGrantServiceHandlerClient, toolsv1.NewGrantServiceClient(tools)),
	} {
		if err := register(ctx, s.mux); err != nil {
			return nil, fmt.Errorf("register a service: %w", err)
		}
	}
	return s, nil
}

// registration has a mux serve a service.
type registration func(context.Context, *runtime.ServeMux) error

// with is the registration of a service behind its client.
func with[C any](register func(context.Context, *runtime.ServeMux, C) error, client C) registration {
	return func(ctx context.Context, mux *runtime.ServeMux) error { return register(ctx, mux, client) }
}

func (s *Server) readRoutes() error {
	var err error
	if s.table, err = route.New(); err != nil {
		return fmt.Errorf("read the HTTP mapping: %w", err)
	}
	for _, r := range s.table.Routes() {
		s.routes[r.RPC] = r
	}
	return nil
}

// newMux returns grpc-gateway's part. It routes by the same mapping as the table, and gets only paths of the
// table.
func (s *Server) newMux() *runtime.ServeMux {
	none := func(string) (string, bool) { return "", false }
	return runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, codec.Marshaler{}),
		runtime.WithIncomingHeaderMatcher(none),
		runtime.WithOutgoingHeaderMatcher(outgoingHeader),
		runtime.WithOutgoingTrailerMatcher(none),
		runtime.WithErrorHandler(s.writeError),
		runtime.WithMiddlewares(s.dispatch),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
	)
}

// unary lets grpc-gateway answer.
func (s *Server) unary(w http.ResponseWriter, r *http.Request, params map[string]string, next runtime.HandlerFunc) {
	b, ok := r.Body.(*codec.Body)
	if ok {
		b.Params = params
	}
	if ok && r.Method == http.MethodPatch {
		content := routeOf(r.Context()).Content()
		data, err := b.Buffer(dynamicpb.NewMessage(content))
		if err != nil {
			problem.Write(w, err)
			return
		}
		r.Body = data
	}
	next(w, r, params)
}

// Names of the RPCs that are streams.
const (
	listEvents   protoreflect.FullName = "fairlead.session.v1.SessionService.ListEvents"
	streamEvents protoreflect.FullName = "fairlead.session.v1.SessionService.StreamEvents"
	runTurn      protoreflect.FullName = "fairlead.session.v1.SessionService.RunTurn"
	converse     protoreflect.FullName = "fairlead.session.v1.SessionService.Converse"
	finishLogin  protoreflect.FullName = "fairlead.session.v1.McpService.FinishMcpLogin"
	callTool     protoreflect.FullName = "fairlead.session.v1.SessionToolService.CallTool"
)

// dispatch serves streams without grpc-gateway, whose streams have no heartbeats, no resumption and no
// limits.
func (s *Server) dispatch(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		switch routeOf(r.Context()).RPC {
		case streamEvents:
			s.stream.Events(w, r, params)
		case runTurn:
			s.stream.RunTurn(w, r, params)
		case callTool:
			s.stream.CallTool(w, r, params)
		case converse:
			s.stream.Converse(w, r, params)
		default:
			ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
			defer cancel()
			s.unary(w, r.WithContext(ctx), params, next)
		}
	}
}
