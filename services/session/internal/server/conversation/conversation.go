// Package conversation answers the RPCs about sessions: their turns, messages and events, what waits for people, checkpoints,
// feedback and tools. It changes only inboxes: the turn loop carries out the commands.
package conversation

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/answer"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/follow"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/limits"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/portable"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

// Config is what the services need.
type Config struct {
	Store      store.Store
	Hub        *hub.Hub
	Directory  *directory.Directory
	Submit     *submit.Submitter
	Tools      *remote.Tools
	Workspaces *placement.Workspaces
	// Try does a job at once, if possible, that could wait for any replica.
	Try func(ctx context.Context, tenant string, kind store.JobKind, id string) error
	// Use bounds the sessions of tenants and users.
	Use limits.Config
	// ImportMaxBytes bounds a file that is imported.
	ImportMaxBytes int64
	// IdleProgress is how often a quiet stream reports its position.
	IdleProgress time.Duration
	Log          *slog.Logger
}

// shared is what all servers of this package use.
type shared struct {
	*Config
	logs *follow.Logs
}

// SessionServer implements SessionService.
type SessionServer struct {
	sessionv1.UnimplementedSessionServiceServer
	shared
	answers  *answer.Checker
	portable *portable.Sessions
	streams  sync.WaitGroup // goroutines of Converse
}

// New returns the server of SessionService.
func New(c *Config) *SessionServer {
	return &SessionServer{
		shared:  shared{Config: c, logs: &follow.Logs{Store: c.Store, Hub: c.Hub, Idle: c.IdleProgress}},
		answers: &answer.Checker{Store: c.Store, Tools: c.Tools, Log: c.Log},
		portable: &portable.Sessions{
			Store: c.Store, Directory: c.Directory, Submit: c.Submit, Workspaces: c.Workspaces, Use: c.Use, MaxBytes: c.ImportMaxBytes, Log: c.Log,
		},
	}
}

// Register registers it, and the other services about sessions.
func (s *SessionServer) Register(r grpc.ServiceRegistrar) {
	sessionv1.RegisterSessionServiceServer(r, s)
	sessionv1.RegisterCheckpointServiceServer(r, &CheckpointServer{shared: s.shared})
	sessionv1.RegisterFeedbackServiceServer(r, &FeedbackServer{shared: s.shared})
	sessionv1.RegisterSessionToolServiceServer(r, &SessionToolServer{shared: s.shared})
}

// Close waits for the goroutines of Converse. No RPC runs any more.
func (s *SessionServer) Close() { s.streams.Wait() }
