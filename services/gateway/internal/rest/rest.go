// Package rest is the REST interface: grpc-gateway's translation, with the HTTP parts around it.
//
// A request passes, from the outside in: the span, recovery, headers, cross-origin rules, the request rate, the
// credential, the route (404, 405, HEAD, OPTIONS), the form (query, media type, idempotency key, body limit), and then
// either a stream or grpc-gateway. No header of a client reaches a service: metadata between peers has the
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
	"github.com/fairlead/fairlead/services/gateway/internal/forward"
	"github.com/fairlead/fairlead/services/gateway/internal/grpcweb"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/mcp"
	"github.com/fairlead/fairlead/services/gateway/internal/modelproxy"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/route"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/transfer"
	"github.com/fairlead/fairlead/services/gateway/internal/wire"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
)

// Config configures the limits of the REST interface.
type Config struct {
	Stream         stream.Config
	MaxBody        int64         // bytes, of requests that carry content
	BodyTimeout    time.Duration // for a body to arrive
	Timeout        time.Duration // of a request that is not a stream
	AllowedOrigins []string      // other sites' origins whose pages may send requests
}

// Deps has the dependencies of the REST interface.
type Deps struct {
	Session, Tools grpc.ClientConnInterface
	Methods        *forward.Table // for gRPC-Web
	Auth           *auth.Authenticator
	Streams        *limit.Streams
	Shared         stream.Shared
	Rate           *limit.Rate
	MCP            *mcp.Server
	Models         *modelproxy.Server
	Wires          []wire.Handler
	Log            *slog.Logger
}

// api is the REST interface.
type api struct {
	cfg    Config
	table  *route.Table
	routes map[protoreflect.FullName]*route.Route
	rate   *limit.Rate
	auth   *auth.Authenticator
	log    *slog.Logger
	stream *stream.Server
	// transfer serves imports and exports.
	transfer *transfer.Server
	web      *grpcweb.Server
	mcp      *mcp.Server
	models   *modelproxy.Server
	wires    []wire.Handler
	mux      *runtime.ServeMux
}

// New returns the handler of the REST interface. It starts nothing; ctx is used only during the
// call.
func New(ctx context.Context, cfg Config, d Deps) (http.Handler, error) {
	a := &api{cfg: cfg, rate: d.Rate, auth: d.Auth, mcp: d.MCP, models: d.Models, wires: d.Wires, log: d.Log, routes: map[protoreflect.FullName]*route.Route{}}
	if err := a.readRoutes(); err != nil {
		return nil, err
	}
	session := keyed{d.Session}
	client := sessionv1.NewSessionServiceClient(session)
	var err error
	if a.stream, err = stream.NewServer(cfg.Stream, session, d.Streams, d.Shared, d.Log); err != nil {
		return nil, err
	}
	a.transfer = &transfer.Server{
		Client: client, Files: sessionv1.NewSessionFileServiceClient(session), Blobs: sessionv1.NewFileServiceClient(session), Triggers: sessionv1.NewTriggerServiceClient(session), Streams: d.Streams, WriteTimeout: cfg.Stream.WriteTimeout, BodyTimeout: cfg.BodyTimeout, Log: d.Log,
	}
	a.web = &grpcweb.Server{
		Methods: d.Methods, Streams: d.Streams, MaxBody: cfg.MaxBody, Log: d.Log,
		Timeout: cfg.Timeout, BodyTimeout: cfg.BodyTimeout, WriteTimeout: cfg.Stream.WriteTimeout,
	}
	a.mux = a.newMux()
	if err := sessionv1.RegisterSessionServiceHandlerClient(ctx, a.mux, client); err != nil {
		return nil, fmt.Errorf("register the session service: %w", err)
	}
	if err := sessionv1.RegisterAgentServiceHandlerClient(ctx, a.mux, sessionv1.NewAgentServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the agent service: %w", err)
	}
	if err := sessionv1.RegisterBudgetServiceHandlerClient(ctx, a.mux, sessionv1.NewBudgetServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the budget service: %w", err)
	}
	if err := sessionv1.RegisterScheduleServiceHandlerClient(ctx, a.mux, sessionv1.NewScheduleServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the schedule service: %w", err)
	}
	if err := sessionv1.RegisterRepositoryServiceHandlerClient(ctx, a.mux, sessionv1.NewRepositoryServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the repository service: %w", err)
	}
	if err := sessionv1.RegisterFileServiceHandlerClient(ctx, a.mux, sessionv1.NewFileServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the file service: %w", err)
	}
	if err := sessionv1.RegisterSessionFileServiceHandlerClient(ctx, a.mux, sessionv1.NewSessionFileServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the service of sessions' files: %w", err)
	}
	if err := sessionv1.RegisterCheckpointServiceHandlerClient(ctx, a.mux, sessionv1.NewCheckpointServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the checkpoint service: %w", err)
	}
	if err := sessionv1.RegisterFeedbackServiceHandlerClient(ctx, a.mux, sessionv1.NewFeedbackServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the feedback service: %w", err)
	}
	if err := sessionv1.RegisterWebhookServiceHandlerClient(ctx, a.mux, sessionv1.NewWebhookServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the webhook service: %w", err)
	}
	if err := sessionv1.RegisterTriggerServiceHandlerClient(ctx, a.mux, sessionv1.NewTriggerServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the trigger service: %w", err)
	}
	if err := sessionv1.RegisterUserServiceHandlerClient(ctx, a.mux, sessionv1.NewUserServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the user service: %w", err)
	}
	if err := sessionv1.RegisterMcpServiceHandlerClient(ctx, a.mux, sessionv1.NewMcpServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the service of MCP servers: %w", err)
	}
	if err := sessionv1.RegisterEnvironmentServiceHandlerClient(ctx, a.mux, sessionv1.NewEnvironmentServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the environment service: %w", err)
	}
	if err := sessionv1.RegisterModelServiceHandlerClient(ctx, a.mux, sessionv1.NewModelServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the model service: %w", err)
	}
	if err := sessionv1.RegisterSkillServiceHandlerClient(ctx, a.mux, sessionv1.NewSkillServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the skill service: %w", err)
	}
	if err := sessionv1.RegisterIdentityServiceHandlerClient(ctx, a.mux, sessionv1.NewIdentityServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the identity service: %w", err)
	}
	if err := sessionv1.RegisterAuditServiceHandlerClient(ctx, a.mux, sessionv1.NewAuditServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the audit service: %w", err)
	}
	if err := sessionv1.RegisterSessionToolServiceHandlerClient(ctx, a.mux, sessionv1.NewSessionToolServiceClient(session)); err != nil {
		return nil, fmt.Errorf("register the service of sessions' tools: %w", err)
	}
	if err := toolsv1.RegisterToolServiceHandlerClient(ctx, a.mux, toolsv1.NewToolServiceClient(keyed{d.Tools})); err != nil {
		return nil, fmt.Errorf("register the tool service: %w", err)
	}
	if err := toolsv1.RegisterOperationServiceHandlerClient(ctx, a.mux, toolsv1.NewOperationServiceClient(keyed{d.Tools})); err != nil {
		return nil, fmt.Errorf("register the operation service: %w", err)
	}
	if err := toolsv1.RegisterProfileServiceHandlerClient(ctx, a.mux, toolsv1.NewProfileServiceClient(keyed{d.Tools})); err != nil {
		return nil, fmt.Errorf("register the profile service: %w", err)
	}
	if err := toolsv1.RegisterGrantServiceHandlerClient(ctx, a.mux, toolsv1.NewGrantServiceClient(keyed{d.Tools})); err != nil {
		return nil, fmt.Errorf("register the grant service: %w", err)
	}
	return a.around(http.HandlerFunc(a.serve))
}

func (a *api) readRoutes() error {
	var err error
	if a.table, err = route.New(); err != nil {
		return fmt.Errorf("read the HTTP mapping: %w", err)
	}
	for _, r := range a.table.Routes() {
		a.routes[r.RPC] = r
	}
	return nil
}

// newMux returns grpc-gateway's part. It routes by the same mapping as the table, and gets only paths of the
// table.
func (a *api) newMux() *runtime.ServeMux {
	none := func(string) (string, bool) { return "", false }
	return runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, codec.Marshaler{}),
		runtime.WithIncomingHeaderMatcher(none),
		runtime.WithOutgoingHeaderMatcher(outgoingHeader),
		runtime.WithOutgoingTrailerMatcher(none),
		runtime.WithErrorHandler(a.writeError),
		runtime.WithMiddlewares(a.dispatch),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
	)
}

// unary lets grpc-gateway answer.
func (a *api) unary(w http.ResponseWriter, r *http.Request, params map[string]string, next runtime.HandlerFunc) {
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
func (a *api) dispatch(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		switch routeOf(r.Context()).RPC {
		case streamEvents:
			a.stream.Events(w, r, params)
		case runTurn:
			a.stream.RunTurn(w, r, params)
		case callTool:
			a.stream.CallTool(w, r, params)
		case converse:
			a.stream.Converse(w, r, params)
		default:
			ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Timeout)
			defer cancel()
			a.unary(w, r.WithContext(ctx), params, next)
		}
	}
}
