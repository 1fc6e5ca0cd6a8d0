// Package server answers the RPCs of the service. Each package below it answers those of one subject.
package server

import (
	"context"
	"log/slog"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/attached"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/limits"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/server/automation"
	"github.com/fairlead/fairlead/services/session/internal/server/catalog"
	"github.com/fairlead/fairlead/services/session/internal/server/conversation"
	"github.com/fairlead/fairlead/services/session/internal/server/files"
	"github.com/fairlead/fairlead/services/session/internal/server/peer"
	"github.com/fairlead/fairlead/services/session/internal/server/tenancy"
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
	Log              *slog.Logger
	Version          string
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
	Workspaces *placement.Workspaces // reads and deletes workspaces, on whichever node they are
	Tools      *remote.Tools         // has the tools of agents
	Attached   *attached.Hub         // has the runtimes that attach
	Proxy      *modelproxy.Proxy
}

// Sandbox is the part of the sandbox service that the server needs.
type Sandbox interface {
	catalog.Sandbox
	files.Sandbox
}

// Server has a part for each subject.
type Server struct {
	store        store.Store
	automation   *automation.Config
	catalog      *catalog.Config
	conversation *conversation.SessionServer
	files        *files.Config
	peer         *peer.Config
	tenancy      *tenancy.Config
}

// New returns a server.
func New(c Config) *Server {
	nodes := c.Workspaces.Nodes
	sessions := conversation.New(&conversation.Config{
		Store: c.Store, Hub: c.Hub, Directory: c.Directory, Submit: c.Submit, Tools: c.Tools, Workspaces: c.Workspaces, Try: c.Try,
		Use: c.Use.Config, ImportMaxBytes: c.ImportMaxBytes, IdleProgress: c.IdleProgress, Log: c.Log,
	})
	return &Server{
		store: c.Store, conversation: sessions,
		automation: &automation.Config{
			Store: c.Store, Directory: c.Directory, Submit: c.Submit, Create: sessions.Create, Admit: c.Use.Admit, Webhooks: c.Webhooks,
		},
		catalog: &catalog.Config{
			Store: c.Store, Directory: c.Directory, Files: c.Files, Checkpoints: c.Checkpoints, Log: c.Log,
			Capabilities: catalog.Capabilities{Version: c.Version, Runtimes: c.Runtimes, Flags: c.Flags, Nodes: nodes, Sandbox: c.Sandbox},
		},
		files: &files.Config{
			Store: c.Store, Files: c.Files, TTL: c.FileTTL, Log: c.Log, Workspaces: c.Workspaces, Sandbox: c.Sandbox,
			Skills: c.Directory.Skills, RepositoryBranch: c.RepositoryBranch,
		},
		peer: &peer.Config{
			Store: c.Store, Directory: c.Directory, Tools: c.Tools, Nodes: nodes, Proxy: c.Proxy, Attached: c.Attached, Log: c.Log,
		},
		tenancy: &tenancy.Config{
			Store: c.Store, Try: c.Try, Nodes: nodes, Budgets: c.Budgets, KeysOutliveToken: c.Use.KeysOutliveToken, Log: c.Log,
		},
	}
}

// Close waits for the goroutines of handlers. No RPC runs any more.
func (s *Server) Close() { s.conversation.Close() }
