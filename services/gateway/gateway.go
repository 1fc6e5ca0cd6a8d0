// Package gateway is the door for clients: it offers the gRPC methods of the other services as REST, server-sent
// events and gRPC-Web, and forwards them over gRPC. It has no state: every answer comes from a service, and any replica serves any client.
//
// Errors are google.rpc.Status as JSON, with the HTTP status of their code. An error after a stream has begun
// is a frame named stream.error. The stream of a turn ends after turn.finished; there is no further end
// event.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/feed"
	"github.com/fairlead/fairlead/services/gateway/internal/forward"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/mcp"
	"github.com/fairlead/fairlead/services/gateway/internal/route"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/a2a"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Deps has the gateway's dependencies: connections to the peer faces of the services, which outlive it, what knows
// its callers, and a log.
type Deps struct {
	Session, Tools grpc.ClientConnInterface
	// ServesGRPC makes the gateway serve the public RPCs over gRPC, too. It is false in a program whose other
	// components serve them.
	ServesGRPC bool
	Auth       *auth.Authenticator
	// Secret authenticates what MCP clients bring back. All replicas have the same; empty: one is made.
	Secret  []byte
	Version string
	Log     *slog.Logger
}

// Service is the gateway: an rpc.Component whose RPCs are those of the other services, and an rpc.HTTPComponent.
type Service struct {
	handler http.Handler
	grpc    *forward.Table // nil if other components serve the public RPCs
	mcp     *mcp.Server
	shared  stream.Shared
	agents  *a2a.Server
	origins []string
	health  healthv1.HealthClient
	rate    *limit.Rate
}

var (
	_ rpc.Component     = (*Service)(nil)
	_ rpc.HTTPComponent = (*Service)(nil)
	_ rpc.ReadyChecker  = (*Service)(nil)
	_ rpc.Drainer       = (*Service)(nil)
)

// New returns a gateway. It starts nothing and calls no service.
func New(ctx context.Context, c Config, d Deps) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure the gateway: %w", err)
	}
	if d.Session == nil || d.Tools == nil || d.Auth == nil || d.Log == nil {
		return nil, errors.New("make the gateway: it needs connections to session and tools, what knows its callers, and a log")
	}
	streams := limit.NewStreams(limit.Bounds{Total: c.MaxStreams, Address: c.MaxStreamsPerClient, User: c.MaxStreamsPerUser})
	//nolint:contextcheck // streams have the contexts of their calls, not that of New
	methods, err := forward.New(route.Services(), map[protoreflect.FullName]grpc.ClientConnInterface{
		sessionv1.File_fairlead_session_v1_session_service_proto.Package(): d.Session,
		toolsv1.File_fairlead_tools_v1_tool_service_proto.Package():        d.Tools,
	}, streams)
	if err != nil {
		return nil, fmt.Errorf("make the gateway: %w", err)
	}
	rate := limit.NewRate(c.Rate, c.Burst)
	shared := stream.Shared{Feeds: feed.NewHub(sessionv1.NewSessionServiceClient(d.Session)), Keeper: idle.New(d.Log)}
	all, err := newDoors(ctx, c, d, methods, streams, shared)
	if err != nil {
		return nil, fmt.Errorf("make the gateway: %w", err)
	}
	handler, err := door.New(door.Config{
		AllowedOrigins: c.AllowedOrigins, BodyTimeout: c.BodyTimeout, Auth: d.Auth, Rate: rate, Streams: streams, Log: d.Log,
	}, all.rows)
	if err != nil {
		return nil, fmt.Errorf("make the gateway: %w", err)
	}
	s := &Service{
		handler: handler, mcp: all.mcp, agents: all.agents, shared: shared, origins: c.AllowedOrigins,
		health: healthv1.NewHealthClient(d.Session), rate: rate,
	}
	if d.ServesGRPC {
		s.grpc = methods
	}
	return s, nil
}

// secret returns a secret that is not empty.
func secret(given []byte) []byte {
	if len(given) > 0 {
		return given
	}
	made := make([]byte, 32)
	_, _ = rand.Read(made) // it never fails
	return made
}

// RegisterPublic implements rpc.Component: it registers the public RPCs of all services, unless other components
// serve them, and those of A2A.
func (s *Service) RegisterPublic(r grpc.ServiceRegistrar) {
	r = s.rate.Registrar(r)
	s.agents.Register(r)
	if s.grpc != nil {
		s.grpc.Register(r)
	}
}

// RegisterPeer implements rpc.Component: the gateway has no RPCs for other services.
func (*Service) RegisterPeer(grpc.ServiceRegistrar) {}

// Handler implements rpc.HTTPComponent.
func (s *Service) Handler() http.Handler { return s.handler }

// AllowedOrigins implements rpc.HTTPComponent.
func (s *Service) AllowedOrigins() []string { return s.origins }

// Run implements rpc.Component: the gateway has no background work.
func (*Service) Run(context.Context) error { return nil }

// Close implements rpc.Component: it ends the sessions of MCP clients. The caller owns the connections.
func (s *Service) Close() error {
	s.mcp.Close()
	s.shared.Keeper.Close()
	s.shared.Feeds.Wait()
	return nil
}

// Drain implements rpc.Drainer: it ends the streams whose handlers have returned.
func (s *Service) Drain(ctx context.Context) { s.shared.Keeper.Drain(ctx) }

// Ready checks that the session service can be reached. It does not ask whether that service is ready: in a
// program with all services, that service's health depends on this answer, among others, and would never
// recover.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.health.Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		return fmt.Errorf("ask the session service for its health: %w", err)
	}
	return nil
}
