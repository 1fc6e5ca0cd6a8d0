// Package catalog answers the RPCs about what sessions are made of: agents, environments, models and skills.
package catalog

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Config is what the services need.
type Config struct {
	Store     store.Agents
	Directory *directory.Directory
	// Files has the uploads that skills are made of.
	Files *blob.Blobs
	// Checkpoints are the tools of agents that name none; see agent.Spec.
	Checkpoints []string
	Capabilities
	Log *slog.Logger
}

// Capabilities tell what this server can do.
type Capabilities struct {
	Version string
	// Runtimes says which runtimes agents of the caller's tenant can have; nil: none.
	Runtimes func(ctx context.Context) []*sessionv1.RuntimeCapabilities
	// Flags says which flags hold; nil: there are none.
	Flags func() *sessionv1.FlagCapabilities
	// Nodes are those of the sandbox service.
	Nodes   *placement.Nodes
	Sandbox Sandbox
}

// Sandbox is the part of the sandbox service that tells what it can do.
type Sandbox interface {
	Capabilities(ctx context.Context, node string) (*sandboxv1.GetCapabilitiesResponse, error)
}

// Register registers the services for clients.
func (c *Config) Register(r grpc.ServiceRegistrar) {
	sessionv1.RegisterAgentServiceServer(r, &AgentServer{Config: c})
	sessionv1.RegisterEnvironmentServiceServer(r, &EnvironmentServer{Config: c})
	sessionv1.RegisterModelServiceServer(r, &ModelServer{Config: c})
	sessionv1.RegisterSkillServiceServer(r, &SkillServer{Config: c})
}

// write writes a version of what is a row of the table of agents, and reads the row. failed returns the errors of its kind.
func (c *Config) write(
	ctx context.Context, w store.AgentWrite, failed func(err error, name, requestID string) error,
) (row store.AgentRow, _ error) {
	w.Tenant, w.User = principal.Tenant(ctx), request.User(ctx)
	answer, err := c.Store.WriteAgent(ctx, w)
	if errors.Is(err, store.ErrConflict) {
		return row, refusal.VersionConflict(ctx, c.Store, w.Name, w.Expected, failed)
	}
	if err != nil {
		return row, failed(err, w.Name, w.Request.ID)
	}
	made, version, err := directory.SplitVersion(answer.Value)
	if err != nil {
		return row, err
	}
	if row, err = c.Store.GetAgent(ctx, w.Tenant, made, version); err != nil {
		return row, failed(err, made, "")
	}
	return row, nil
}
