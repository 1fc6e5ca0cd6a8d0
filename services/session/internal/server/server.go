// Package server answers the RPCs of SessionService and AgentService. It changes
// only inboxes: the turn loop carries out the commands.
package server

import (
	"context"
	"io"
	"log/slog"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/limits"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/server/catalog"
	"github.com/fairlead/fairlead/services/session/internal/server/files"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
	"github.com/fairlead/fairlead/services/session/internal/webhook"
)

// Capabilities reports what this server can do beside its models; each may be nil.
type Capabilities struct {
	// Runtimes says which runtimes agents of the caller's tenant can have.
	Runtimes func(ctx context.Context) []*sessionv1.RuntimeCapabilities
	// Flags says which flags hold.
	Flags func() *sessionv1.FlagCapabilities
}

// Config is the server's configuration and dependencies.
type Config struct {
	Store store.Store
	Hub   *hub.Hub
	// Directory has the agents, environments, models and skills.
	Directory *directory.Directory
	Peers
	// Submit submits messages.
	Submit *submit.Submitter
	// Try does a job at once, if possible, that could wait for any replica.
	Try func(ctx context.Context, tenant string, kind store.JobKind, id string) error
	// RepositoryBranch is the pattern of sessions' own branches.
	RepositoryBranch string
	// Nodes chooses the node of a new workspace.
	Nodes   *placement.Nodes
	Log     *slog.Logger
	Version string
	Capabilities
	// Checkpoints are the tools of agents that name none; see agent.Spec.
	Checkpoints []string
	Use         Use
	// Budgets are the operator's.
	Budgets budget.Config
	UserFiles
	// Webhooks decides which addresses webhooks may have.
	Webhooks webhook.Config
	// ImportMaxBytes bounds a file that is imported.
	ImportMaxBytes int64
	// IdleProgress is how often a quiet stream reports its position.
	IdleProgress time.Duration
}

// Use bounds how much callers may use.
type Use struct {
	// Config bounds the turns and sessions of tenants and users.
	limits.Config
	// Admit pays for a request of a caller that the interceptors do not know.
	Admit func(ctx context.Context) error
	// KeysOutliveToken is how much later than the token that makes it a key may end.
	KeysOutliveToken time.Duration
}

// UserFiles is where the files of users are.
type UserFiles struct {
	// Files keeps users' files; nil: there is no store for them. FileTTL is how long a file is kept that names
	// no time.
	Files   *blob.Blobs
	FileTTL time.Duration
}

// Peers are the services that the server calls.
type Peers struct {
	Sandbox    Sandbox
	Workspaces *placement.Work // reads and deletes workspaces, on whichever node they are
	Tools      *remote.Tools   // has the tools of agents
}

// Sandbox is the part of the sandbox service that the server needs.
type Sandbox interface {
	catalog.Sandbox
	ImportWorkspace(ctx context.Context, call *commonv1.CallRef, write func(io.Writer) error) (made bool, err error)
	files.Sandbox
}

// Server implements SessionService; each part answers the RPCs of its subject.
type Server struct {
	unimplemented
	*Config
	*sessions
	*turns
	*commands
	*approvals
	*events
	*conversations
	*forks
	*exports
	*imports
}

// unimplemented is deeper than the parts, so that their methods come first.
type unimplemented struct {
	sessionv1.UnimplementedSessionServiceServer
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{
		Config: &c, sessions: &sessions{Config: &c}, commands: &commands{&c}, approvals: &approvals{&c}, events: &events{&c}, forks: &forks{&c}, exports: &exports{&c},
	}
	s.turns = &turns{Config: &c, events: s.events}
	s.sessions.turns = s.turns
	s.conversations = &conversations{Config: &c, turns: s.turns, commands: s.commands, events: s.events}
	s.imports = &imports{&c, s.forks}
	return s
}

// Close waits for the goroutines of handlers. No RPC runs any more.
func (s *Server) Close() { s.streams.Wait() }
