// Package server answers the RPCs of SessionService and AgentService. It changes
// nothing but inboxes: what becomes of a command is the turn loop's.
package server

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn"
	"github.com/fairlead/fairlead/services/session/internal/webhook"
)

// keepRequests is how long request ids that do not live with a session are kept.
const keepRequests = 24 * time.Hour

// Config is what the server works with.
type Config struct {
	Store  store.Store
	Hub    *hub.Hub
	Agents *agent.Set
	Calls  toolsv1.CallServiceClient
	// Try does a job at once, if it can.
	Try        func(ctx context.Context, tenant string, kind store.JobKind, id string) error
	Workspaces sandboxv1.WorkspaceServiceClient
	// Repositories keeps sessions' repositories; RepositoryBranch is the pattern of
	// sessions' own branches.
	Repositories     sandboxv1.RepositoryServiceClient
	RepositoryBranch string
	// Nodes says where new workspaces are made.
	Nodes   *placement.Nodes
	Log     *slog.Logger
	Version string
	// Tools tells how large agents' tools are.
	Tools toolsv1.ToolServiceClient
	// ContextTokens is the longest conversation of a model, in tokens; 0: not known.
	ContextTokens func(model string) int64
	// Models lists the configured models; DefaultModel is the default agent's.
	Models       []string
	DefaultModel string
	// Checkpoints are the tools of agents that name none; see agent.Spec.
	Checkpoints []string
	// Limits that hold where nothing is said, and the most that may be asked for.
	Limits, Ceilings turn.Limits
	// Budgets are the operator's.
	Budgets budget.Config
	// Webhooks says which addresses webhooks may have.
	Webhooks webhook.Config
	// ImportMaxBytes bounds a file that is imported.
	ImportMaxBytes int64
	// IdleProgress is how often a quiet stream says how far it is.
	IdleProgress time.Duration
}

// Server implements SessionService.
type Server struct {
	sessionv1.UnimplementedSessionServiceServer
	Config
	revisions sync.Map       // tenant + revision that the store has
	streams   sync.WaitGroup // goroutines of Converse
	toolSizes toolSizes
}

// New makes a server.
func New(c Config) *Server { return &Server{Config: c} }

// Close waits for what the handlers have left behind. No RPC runs any more.
func (s *Server) Close() { s.streams.Wait() }

// key makes the store's key of `sessions/{session}`; the schema has checked the
// form. The tenant comes from the principal and from nowhere else.
func key(ctx context.Context, session string) store.Key {
	return store.Key{Tenant: principal.Tenant(ctx), Session: strings.TrimPrefix(session, "sessions/")}
}

func user(ctx context.Context) string {
	p, _ := principal.From(ctx)
	return p.User
}

// request makes the idempotency key of a mutation: the digest is of the request
// without the fields that may differ when it is repeated.
func request(method, parent, id string, r proto.Message) store.Request {
	m := proto.Clone(r)
	fields := m.ProtoReflect().Descriptor().Fields()
	m.ProtoReflect().Clear(fields.ByName("request_id"))
	if f := fields.ByName("after_seq"); f != nil {
		m.ProtoReflect().Clear(f)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // a message that was received marshals
	}
	sum := sha256.Sum256(b)
	return store.Request{Method: method, Parent: parent, ID: id, Digest: sum[:]}
}

// keepForADay makes a request id live on its own, not with a session.
func keepForADay(r store.Request) store.Request {
	r.KeepUntil = time.Now().Add(keepRequests)
	return r
}
