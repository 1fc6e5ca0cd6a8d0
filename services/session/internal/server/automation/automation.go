// Package automation answers the RPCs about what works without a client: schedules, triggers and webhooks.
package automation

import (
	"context"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
	"github.com/fairlead/fairlead/services/session/internal/webhook"
)

// Config is what the services need.
type Config struct {
	Store     store.Store
	Directory *directory.Directory
	Submit    *submit.Submitter
	// Create makes a session, whose first turn has an origin and limits.
	Create func(
		ctx context.Context, r *sessionv1.CreateSessionRequest, from submit.Origin, limits *sessionv1.TurnLimits,
	) (*sessionv1.CreateSessionResponse, error)
	// Admit pays for a request of a caller that the interceptors do not know.
	Admit func(ctx context.Context) error
	// Webhooks decides which addresses webhooks may have.
	Webhooks webhook.Config
}

// Register registers the services for clients.
func (c *Config) Register(r grpc.ServiceRegistrar) {
	sessionv1.RegisterScheduleServiceServer(r, &ScheduleServer{Config: c})
	sessionv1.RegisterTriggerServiceServer(r, &TriggerServer{Config: c})
	sessionv1.RegisterWebhookServiceServer(r, &WebhookServer{Config: c})
}
