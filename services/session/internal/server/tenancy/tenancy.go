// Package tenancy answers the RPCs about a tenant: its users, keys, variables, budgets and audit log.
package tenancy

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Config is what the services need.
type Config struct {
	Store store.Store
	// Try does a job at once, if possible, that could wait for any replica.
	Try func(ctx context.Context, tenant string, kind store.JobKind, id string) error
	// Nodes are those that have files of users.
	Nodes *placement.Nodes
	// Budgets are the operator's.
	Budgets budget.Config
	// KeysOutliveToken is how much later than the token that makes it a key may end.
	KeysOutliveToken time.Duration
	Log              *slog.Logger
}

// Register registers the services for clients.
func (c *Config) Register(r grpc.ServiceRegistrar) {
	sessionv1.RegisterIdentityServiceServer(r, &IdentityServer{Config: c})
	sessionv1.RegisterUserServiceServer(r, &UserServer{Config: c})
	sessionv1.RegisterBudgetServiceServer(r, &BudgetServer{Config: c})
	sessionv1.RegisterAuditServiceServer(r, &AuditServer{Config: c})
}
