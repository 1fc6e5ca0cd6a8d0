// Package session is the session service: sessions, their turns, event logs and
// the agent loop. It is the only public package of the service; all others are
// internal.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/dispatch"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/flag"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/limits"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/server"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
	"github.com/fairlead/fairlead/services/session/internal/submit"
	"github.com/fairlead/fairlead/services/session/internal/turn"
	"github.com/fairlead/fairlead/services/session/internal/turn/compact"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/subagent"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
	"github.com/fairlead/fairlead/services/session/internal/webhook"
)

// scope names our spans and metrics.
const scope = "github.com/fairlead/fairlead/services/session"

// Deps are the service's peers and its log.
type Deps struct {
	Sandbox, Tools grpc.ClientConnInterface
	// Nodes are the names of the sandbox nodes that Sandbox reaches (kit/node). An
	// empty list means one node without a name, and no places.
	Nodes []string
	// Server replaces Nodes for a program that is a sandbox node itself and shares its
	// database with other such programs.
	Server *Server
	// Store opens the store in place of the configured one, for tests that inject faults.
	// The service closes it.
	Store   func(context.Context) (store.Store, error)
	Log     *slog.Logger
	Version string
}

// Service is the session service. It is an rpc.Component.
type Service struct {
	store      store.Store
	committer  *eventlog.Committer
	dispatcher *dispatch.Dispatcher
	jobs       *jobs.Runner
	webhooks   *webhook.Deliverer
	server     *server.Server
	limiter    *limits.Limiter
	directory  *directory.Directory
	stopGrace  time.Duration
	nodes      *placement.Nodes
	workspaces *placement.Workspaces
	blobs      *blob.Blobs // nil: no store of users' files
	agents     *agents
	sandbox    *remote.Sandbox
	tools      *remote.Tools
	keys       *apikey.Resolver
	recorder   *audit.Recorder
	modelUsers
}

// New opens the store and builds the service; Run starts its work.
func New(ctx context.Context, c Config, d Deps) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	models, err := catalog.New(c.Models, os.Getenv) //nolint:contextcheck // credentials outlive the start
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	set, err := agent.NewSet(c.Agents, c.DefaultAgent)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	guardrails, err := guardrail.New(c.Guardrails)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	known := directory.Config{Agents: set, Models: models, Guardrails: guardrails}
	if err := directory.Check(ctx, known); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	flags, err := flag.Open(ctx, c.Flags, c.Runtimes.names(), d.Log)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	metrics, err := telemetry.NewMetrics(otel.Meter(scope))
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	jobMetrics, err := jobs.NewMetrics(otel.Meter(scope))
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	st, err := d.openStore(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	webhooks, err := webhook.New(c.Webhooks, st, otel.Meter(scope), d.Log, d.Version)
	if err != nil {
		return nil, fmt.Errorf("session: %w", errors.Join(err, st.Close()))
	}
	s := &Service{
		store: st, modelUsers: modelUsers{flags: flags}, webhooks: webhooks, stopGrace: c.StopGrace,
		sandbox: remote.NewSandbox(d.Sandbox), tools: remote.NewTools(d.Tools), keys: apikey.NewResolver(st, d.Log), recorder: audit.NewRecorder(st, d.Log),
	}
	if s.blobs, err = blob.Open(c.Files, c.filesFolder(), st); err != nil {
		return nil, fmt.Errorf("session: %w", errors.Join(err, st.Close()))
	}
	var objects objectstore.Store
	if s.blobs != nil {
		objects = s.blobs.Objects
	}
	if known.Skills, err = skill.Open(ctx, c.Skills, objects); err != nil {
		return nil, fmt.Errorf("session: %w", errors.Join(err, st.Close()))
	}
	for _, fault := range known.Skills.Faults() {
		d.Log.WarnContext(ctx, "a folder is no skill and is left out; correct it and start the service again", "error", fault)
	}
	s.agents = newAgents(set, s.tools, d.Log)
	known.Store, known.Tools, known.Recorder, known.Log = st, s.tools, s.recorder, d.Log
	known.Missing = s.agents.faultsOf
	s.directory = directory.New(known)
	group, err := d.Server.group(st)
	if err != nil {
		return nil, fmt.Errorf("session: %w", errors.Join(err, st.Close()))
	}
	s.nodes = placement.New(placement.Config{
		Names: d.Nodes, Group: group, LostAfter: c.SandboxLostAfter, Sandbox: s.sandbox, Store: st, Log: d.Log,
	})
	s.workspaces = &placement.Workspaces{Nodes: s.nodes, Store: st, Sandbox: s.sandbox}
	s.jobs = jobs.New(jobs.Config{Concurrency: c.JobConcurrency, Poll: c.PollInterval, Timeout: c.JobTimeout},
		st, otel.Tracer(scope), jobMetrics, d.Log)
	parts := &jobs.Deps{
		Store: st, Tools: s.tools, Sandbox: s.sandbox, Workspaces: s.workspaces, Webhooks: webhooks, Skills: known.Skills, Blobs: s.blobs,
		FoldAfter: c.FoldAfter, Retention: c.Retention, Log: d.Log,
	}
	err = s.nodes.CheckStart(ctx)
	if err == nil {
		err = st.PutJobs(ctx, parts.Periodic())
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", errors.Join(err, st.Close()))
	}
	parts.Submit = s.wire(c, d, set, metrics)
	s.jobs.Handle(parts.Handlers())
	return s, nil
}

func (d Deps) openStore(ctx context.Context, c Config) (store.Store, error) {
	if d.Store != nil {
		return d.Store(ctx)
	}
	return openStore(ctx, c, d.Log)
}

// wire connects the parts, and returns what sends messages to sessions.
func (s *Service) wire(c Config, d Deps, agents *agent.Set, metrics *telemetry.Metrics) *submit.Submitter {
	followers := hub.New(int(c.FollowerBuffer))
	s.committer = eventlog.New(s.store, followers.Publish, c.LeaseTTL)
	replica := id.New()
	d.Log.Info("session replica", "replica", replica)
	warnOfAgents(d.Log, agents, c.Checkpoints)
	warnOfModels(d.Log, agents, s.directory.Models)
	s.dispatcher = dispatch.New(dispatch.Config{
		Replica: replica, LeaseTTL: c.LeaseTTL, PollInterval: c.PollInterval, MaxSessions: c.MaxSessions, MaxPerTenant: c.MaxSessionsPerTenant,
		SuspectAt: c.MaxClaims - 1, MaxDepth: c.SubagentDepth, JobsWake: s.jobs.Wake,
	}, &turn.Deps{
		Store: s.store, Committer: s.committer, Resolve: resolver{s.directory}.resolve, Tools: s.tools, Agents: s.directory, Skills: s.directory.Skills,
		Workspace: workspace.Config{
			Skills: s.directory.Skills, Sandbox: s.sandbox, Branch: c.RepositoryBranch, Nodes: s.nodes, Export: c.WorkspaceExport == ExportTurn,
			Checkpoints: workspace.CheckpointConfig{Tools: c.Checkpoints, Keep: c.KeepCheckpoints},
		},
		Telemetry: telemetry.Telemetry{Tracer: otel.Tracer(scope), Metrics: metrics}, Log: d.Log,
		Budgets: c.Budgets, BudgetQueues: &spend.Queues{},
		Compaction: compact.Config{At: c.CompactAt, SummaryTokens: c.CompactSummaryTokens},
		Subagents: subagent.Config{
			Hub: followers, MaxParallel: c.MaxSubagents, MaxDepth: c.SubagentDepth,
			Find: s.directory.Agent,
		},
		MaxClaims: c.MaxClaims, PeerPatience: c.PeerPatience, AnswerTTL: c.AnswerTTL, Runtimes: s.openRuntimes(c.Runtimes, replica, d.Log), Flags: s.flags,
	}, followers, d.Log)
	s.proxy = modelproxy.New(modelproxy.Config{
		Models: s.directory.Models, Names: modelproxy.Names{Find: s.directory.Model, Own: s.directory.OwnModels},
		Ledger: s.store, Budgets: c.Budgets, Metrics: metrics, Tracer: otel.Tracer(scope), Idle: c.Models.IdleTimeout, Log: d.Log,
	})
	s.limiter = limits.New(c.Use, bank(c, s.store), d.Log)
	submitter := submit.New(submit.Config{
		Store: s.store, Directory: s.directory, Tools: s.tools, Files: s.blobs, Workspaces: s.workspaces,
		Inbox: s.dispatcher.Submit, Budgets: c.Budgets, Use: c.Use, Log: d.Log,
		Defaults: submit.Limits{MaxSteps: c.MaxSteps, MaxWallTime: c.MaxWallTime, MaxOutputTokens: c.MaxOutputTokens},
		Ceilings: submit.Limits{MaxSteps: c.CeilingSteps, MaxWallTime: c.CeilingWallTime, MaxOutputTokens: c.CeilingOutputTokens},
	})
	s.server = server.New(server.Config{
		Store: s.store, Hub: followers, Directory: s.directory, Log: d.Log, Version: d.Version,
		Peers:            server.Peers{Sandbox: s.sandbox, Workspaces: s.workspaces, Tools: s.tools, Attached: s.attached, Proxy: s.proxy},
		RepositoryBranch: c.RepositoryBranch, Submit: submitter, Try: s.jobs.Try,
		Capabilities: server.Capabilities{
			Runtimes: func(ctx context.Context) []*sessionv1.RuntimeCapabilities { return s.runtimes(ctx, agents) }, Flags: s.flags.Capabilities,
		},
		IdleProgress: c.StreamProgressInterval,
		Budgets:      c.Budgets, Checkpoints: c.Checkpoints,
		UserFiles: server.UserFiles{Files: s.blobs, FileTTL: c.Files.TTL},
		Use:       server.Use{Config: c.Use, Admit: s.limiter.Request, KeysOutliveToken: c.KeysOutliveToken}, Webhooks: c.Webhooks, ImportMaxBytes: int64(c.ImportMaxBytes),
	})
	return submitter
}

// bank returns where replicas lease the tokens of limits: with SQLite there is one replica.
func bank(c Config, st store.Store) limits.Bank {
	if c.DatabaseURL.Reveal() == "" {
		return &limits.Memory{}
	}
	return st
}

// warnOfAgents logs settings of agents that are probably not meant.
func warnOfAgents(log *slog.Logger, agents *agent.Set, checkpoints []string) {
	var tools []string
	for _, a := range agents.All() {
		for _, warning := range a.Warnings() {
			log.Warn("an agent's configuration may be wrong", "agent", a.ID, "warning", warning)
		}
		tools = append(tools, a.Spec.Tools...)
	}
	slices.Sort(tools)
	for _, warning := range agent.UnknownCheckpoints(checkpoints, slices.Compact(tools)) {
		log.Warn("the default checkpoints may be wrong", "warning", warning)
	}
}

// openStore opens the configured store.
func openStore(ctx context.Context, c Config, log *slog.Logger) (store.Store, error) {
	if url := c.DatabaseURL.Reveal(); url != "" {
		var s *postgres.Store
		err := pg.Await(ctx, c.DatabaseWait, log, func(ctx context.Context) (err error) {
			s, err = postgres.Open(ctx, url, log)
			return err
		})
		return s, err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	return sqlite.Open(ctx, filepath.Join(c.Data, "session.db"), log)
}

// RegisterPublic registers the services for clients.
func (s *Service) RegisterPublic(r grpc.ServiceRegistrar) {
	r = s.limiter.Registrar(r)
	s.server.Register(r)
}

// RegisterPeer registers the services for operators, and for services that
// authenticate callers.
func (s *Service) RegisterPeer(r grpc.ServiceRegistrar) {
	s.server.RegisterPeer(r, s.keys)
}

// SessionOwner returns the user to whom a session belongs, or "" if there is no such
// session. With SessionNotFound it makes the service the one that decides who sees a
// session.
func (s *Service) SessionOwner(ctx context.Context, session string) (string, error) {
	return s.server.SessionOwner(ctx, session)
}

// SessionNotFound returns the error for a session that does not exist.
func (s *Service) SessionNotFound(session string) error { return s.server.SessionNotFound(session) }

// Audit records a call in the audit log.
func (s *Service) Audit(ctx context.Context, c rpc.AuditedCall) error {
	return s.server.Audit(ctx, c, s.recorder)
}

// Run works on sessions until ctx ends. Then it stops the workers, writes their
// output, and releases their leases.
func (s *Service) Run(ctx context.Context) error {
	// The committer outlives the workers, whose last writes it commits.
	commit, stopCommitting := context.WithCancel(context.WithoutCancel(ctx))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.committer.Run(commit) })
	if shared, ok := s.store.(store.Presence); ok {
		g.Go(func() error {
			shared.KeepPresent(commit, s.dispatcher.Replica())
			return nil
		})
	}
	g.Go(func() error { return s.jobs.Run(ctx) })
	g.Go(func() error { return s.nodes.Run(ctx) })
	g.Go(func() error { return s.agents.run(ctx) })
	g.Go(func() error { return s.attached.Run(ctx) })
	g.Go(func() error { return s.keys.Run(ctx) })
	g.Go(func() error { return s.flags.Run(ctx) })
	g.Go(func() error { return s.recorder.Run(ctx) })
	g.Go(func() error {
		defer stopCommitting()
		defer s.closeRuntimes()
		return s.dispatcher.Run(ctx)
	})
	return g.Wait()
}

// Drain stops claiming sessions and jobs. It lets the current steps and jobs
// finish within the grace, and hands every session over.
func (s *Service) Drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.stopGrace)
	defer cancel()
	s.attached.Drain()
	var jobs sync.WaitGroup
	jobs.Go(func() { s.jobs.Drain(ctx) })
	s.dispatcher.Drain(ctx)
	s.closeRuntimes() // nothing uses them any more, and the sandbox still runs
	jobs.Wait()
}

// Ready returns an error if the store cannot be reached, or the agents need
// something that the tools service does not have.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.agents.fit(); err != nil {
		return err
	}
	return s.store.Ping(ctx)
}

// AgentNeeds returns what the agents need of the tools service.
func (s *Service) AgentNeeds() *toolsv1.CheckAgentsRequest { return s.agents.needs }

// DefaultModel returns the model of agents that name none, as `provider:model`.
func (s *Service) DefaultModel() string { return s.directory.DefaultModel() }

// Close closes the store.
func (s *Service) Close() error {
	s.closeRuntimes()
	s.attached.Close()
	s.server.Close()
	s.proxy.Close()
	s.webhooks.Close()
	return errors.Join(s.flags.Close(), s.store.Close())
}
