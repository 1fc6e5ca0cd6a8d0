// Package gateway is the HTTP service: it offers the gRPC methods of the other services as REST and
// server-sent events. It has no state: every answer comes from a service, and any replica serves any client.
//
// Errors are google.rpc.Status as JSON, with the HTTP status of their code. An error after a stream has begun
// is a frame named stream.error. The stream of a turn ends after turn.finished; there is no further end
// event.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/rest"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Deps has the gateway's dependencies: connections to the peer faces of the services, which outlive it, and a
// log.
type Deps struct {
	Session, Tools grpc.ClientConnInterface
	Log            *slog.Logger
}

// Service is the gateway: an rpc.Component without RPCs of its own, and an rpc.HTTPComponent.
type Service struct {
	handler http.Handler
	origins []string
	health  healthv1.HealthClient
}

var (
	_ rpc.Component     = (*Service)(nil)
	_ rpc.HTTPComponent = (*Service)(nil)
	_ rpc.ReadyChecker  = (*Service)(nil)
)

// New returns a gateway. It starts nothing and calls no service.
func New(ctx context.Context, c Config, d Deps) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure the gateway: %w", err)
	}
	if d.Session == nil || d.Tools == nil || d.Log == nil {
		return nil, errors.New("make the gateway: it needs connections to session and tools, and a log")
	}
	handler, err := rest.New(ctx, rest.Config{
		Stream: stream.Config{
			Heartbeat: c.Heartbeat, Reconnect: c.Reconnect, WriteTimeout: c.WriteTimeout,
			OpenTimeout: c.Timeout, MaxBody: int64(c.MaxBody), BodyTimeout: c.BodyTimeout,
		},
		MaxBody: int64(c.MaxBody), BodyTimeout: c.BodyTimeout, Timeout: c.Timeout, AllowedOrigins: c.AllowedOrigins,
	}, rest.Deps{
		Session: d.Session, Tools: d.Tools, Log: d.Log,
		Streams: limit.NewStreams(c.MaxStreams, c.MaxStreamsPerClient),
		Rate:    limit.NewRate(c.Rate, c.Burst),
	})
	if err != nil {
		return nil, fmt.Errorf("make the gateway: %w", err)
	}
	return &Service{handler: handler, origins: c.AllowedOrigins, health: healthv1.NewHealthClient(d.Session)}, nil
}

// RegisterPublic implements rpc.Component: the gateway has no RPCs.
func (*Service) RegisterPublic(grpc.ServiceRegistrar) {}

// RegisterPeer implements rpc.Component: the gateway has no RPCs.
func (*Service) RegisterPeer(grpc.ServiceRegistrar) {}

// Handler implements rpc.HTTPComponent.
func (s *Service) Handler() http.Handler { return s.handler }

// AllowedOrigins implements rpc.HTTPComponent.
func (s *Service) AllowedOrigins() []string { return s.origins }

// Run implements rpc.Component: the gateway has no background work.
func (*Service) Run(context.Context) error { return nil }

// Close implements rpc.Component: the caller owns the connections.
func (*Service) Close() error { return nil }

// Ready checks that the session service can be reached. It does not ask whether that service is ready: in a
// program with all services, that service's health depends on this answer, among others, and would never
// recover.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.health.Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		return fmt.Errorf("ask the session service for its health: %w", err)
	}
	return nil
}
