package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/attached"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/automation"
	"github.com/fairlead/fairlead/services/session/internal/server/catalog"
	"github.com/fairlead/fairlead/services/session/internal/server/files"
	"github.com/fairlead/fairlead/services/session/internal/server/peer"
	"github.com/fairlead/fairlead/services/session/internal/server/tenancy"
)

// Register registers the services for clients.
func (s *Server) Register(r grpc.ServiceRegistrar, proxy *modelproxy.Proxy, runtimes *attached.Hub) {
	sessionv1.RegisterSessionServiceServer(r, s)
	sessionv1.RegisterCheckpointServiceServer(r, s.CheckpointService())
	sessionv1.RegisterFeedbackServiceServer(r, s.FeedbackService())
	sessionv1.RegisterSessionToolServiceServer(r, s.SessionToolService())
	known := s.catalog()
	known.Register(r)
	kept := s.files()
	kept.Register(r)
	others := s.peer()
	others.Proxy, others.Attached = proxy, runtimes
	others.Register(r)
	unattended := automation.Config{
		Store: s.Store, Directory: s.Directory, Submit: s.Submit, Create: s.create, Admit: s.Use.Admit, Webhooks: s.Webhooks,
	}
	unattended.Register(r)
	people := tenancy.Config{
		Store: s.Store, Try: s.Try, Nodes: s.Nodes, Budgets: s.Budgets, KeysOutliveToken: s.Use.KeysOutliveToken, Log: s.Log,
	}
	people.Register(r)
}

// catalog is the configuration of what answers for agents, environments, models and skills.
func (s *Server) catalog() *catalog.Config {
	return &catalog.Config{
		Store: s.Store, Directory: s.Directory, Files: s.Files, Checkpoints: s.Checkpoints, Log: s.Log,
		Capabilities: catalog.Capabilities{Version: s.Version, Runtimes: s.Runtimes, Flags: s.Flags, Nodes: s.Nodes, Sandbox: s.Sandbox},
	}
}

// files is the configuration of what answers for files.
func (s *Server) files() *files.Config {
	return &files.Config{
		Store: s.Store, Files: s.Files, TTL: s.FileTTL, Log: s.Log, Workspaces: s.Workspaces, Sandbox: s.Sandbox,
		Skills: s.Directory.Skills, RepositoryBranch: s.RepositoryBranch,
	}
}

// peer is the configuration of what answers for other programs.
func (s *Server) peer() *peer.Config {
	return &peer.Config{
		Store: s.Store, Directory: s.Directory, Tools: s.Tools, Nodes: s.Nodes, Log: s.Log,
	}
}

// RegisterPeer registers the services for operators, and for services that authenticate callers.
func (s *Server) RegisterPeer(r grpc.ServiceRegistrar, keys *apikey.Resolver) {
	others := s.peer()
	others.RegisterPeer(r)
	sessionv1.RegisterKeyServiceServer(r, tenancy.KeyService(keys, s.Store))
}

// auditWait is how long a change waits until its entry is written.
const auditWait = 5 * time.Second

// Audit records a call. A change that must be recorded before its answer, and is not in time, answers
// UNAVAILABLE; repeated with its request id it changes nothing more and is recorded.
func (*Server) Audit(ctx context.Context, c rpc.AuditedCall, to *audit.Recorder) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditWait)
	defer cancel()
	err := to.Call(ctx, c)
	if errors.Is(err, context.DeadlineExceeded) {
		return refusal.Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE,
			"The change is made, and the audit log cannot be written. Repeat the request with the same request id: nothing is done twice.", apierr.RetryAfter(time.Second))
	}
	return err
}
