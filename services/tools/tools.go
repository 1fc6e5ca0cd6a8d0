// Package tools is the tools service: it has the tools, decides whether a call
// may run, journals it, has the sandbox service run it, and records the result.
//
// ToolService is for clients; CallService is only for the session service.
package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/tools/internal/builtin"
	"github.com/fairlead/fairlead/services/tools/internal/call"
	"github.com/fairlead/fairlead/services/tools/internal/login"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/operation"
	"github.com/fairlead/fairlead/services/tools/internal/peer"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
	"github.com/fairlead/fairlead/services/tools/internal/server"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/store/postgres"
	"github.com/fairlead/fairlead/services/tools/internal/store/sqlite"
)

// Deps are the service's dependencies. The caller closes them after the
// service.
type Deps struct {
	// Sandbox reaches the sandbox service.
	Sandbox grpc.ClientConnInterface
	// Log takes the service's log.
	Log *slog.Logger
	// Version is this program's version, as MCP servers see it.
	Version string
	// Dial connects to the peer face of another replica, at the address that it
	// advertises. Nil means that there is no other replica.
	Dial func(address string) (*grpc.ClientConn, error)
}

// Service is the tools service, an rpc.Component.
type Service struct {
	store      store.Store
	engine     *call.Engine
	servers    *mcp.Pool
	watch      *operation.Manager
	tools      *server.Tools
	calls      *server.Calls
	logins     *server.Logins
	operations *server.Operations
	profiles   *server.Profiles
	grants     *server.Grants
}

// New returns the service after it has opened and migrated its database. It
// calls no peer, and runs nothing until Run or a request.
func New(ctx context.Context, c Config, d Deps) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	if d.Sandbox == nil || d.Log == nil {
		return nil, errors.New("tools: a dependency is missing")
	}
	profiles, err := permission.NewSet(c.Profiles)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	journal, err := open(ctx, c, d.Log)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	s, err := assemble(c, d, profiles, journal)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tools: %w", err), journal.Close())
	}
	return s, nil
}

// assemble connects the parts. If it fails, the caller still owns the journal.
func assemble(c Config, d Deps, profiles permission.Set, journal store.Store) (*Service, error) {
	if d.Dial == nil {
		d.Dial = func(address string) (*grpc.ClientConn, error) {
			return nil, fmt.Errorf("this replica has no way to another one at %s", address)
		}
	}
	d.Sandbox = remote.Sandbox(d.Sandbox)
	self := store.Owner{ID: id.New(), Address: c.Advertise}
	watch := operation.New(operation.Config{
		Store: journal, Sandbox: d.Sandbox, Owner: self.ID, Lease: c.LeaseTTL, Keep: c.OperationKeep, Log: d.Log,
	})
	builtins, err := builtin.All(d.Sandbox, c.OperationTTL)
	if err != nil {
		return nil, err
	}
	further, err := watch.Tools()
	if err != nil {
		return nil, err
	}
	desk, err := mcp.Tools()
	if err != nil {
		return nil, err
	}
	all, err := registry.New(slices.Concat(builtins, further, desk)...)
	if err != nil {
		return nil, err
	}
	if err := profiles.CheckTools(all.Names()); err != nil {
		return nil, err
	}
	policies := policy.New(policy.Config{Profiles: profiles, AllowBypass: c.AllowBypass, Store: journal})
	servers := mcp.NewPool(mcp.Config{
		Log: d.Log, Execs: sandboxv1.NewExecServiceClient(d.Sandbox), Version: d.Version, Connections: c.MCPConnections, Start: c.MCPStart, Idle: c.MCPIdle, Private: c.private(), Operator: mcp.Servers(c.MCPServers),
	})
	users, err := login.New(login.Config{Store: journal, Client: servers.HTTPClient(), Key: c.MCPLoginKey.Reveal(), Callback: c.MCPLoginCallback})
	if err != nil {
		return nil, err
	}
	servers.Tokens = users
	known := server.Known{Tools: all.Names(), Servers: slices.Sorted(maps.Keys(c.MCPServers))}
	engine, err := call.New(call.Config{
		Store: journal, Tools: all, Servers: servers, Policies: policies, Log: d.Log, Now: time.Now,
		Self: self, Lease: c.LeaseTTL, Peers: peer.New(d.Dial), OperationTTL: c.OperationTTL, Begun: watch.Kick,
		Limits: call.Limits{Session: c.MaxSessionCalls, Total: c.MaxCalls, Duration: c.MaxCallTime, OutputBytes: int(c.MaxCallOutput)},
	})
	if err != nil {
		return nil, err
	}
	return &Service{
		store: journal, engine: engine, servers: servers, watch: watch, tools: server.NewTools(all),
		calls: server.NewCalls(engine, watch, known), logins: server.NewLogins(users, servers), operations: server.NewOperations(journal, watch),
		profiles: server.NewProfiles(journal, policies, all), grants: server.NewGrants(journal),
	}, nil
}

func open(ctx context.Context, c Config, log *slog.Logger) (store.Store, error) {
	if url := c.DatabaseURL.Reveal(); url != "" {
		var s *postgres.Store
		err := pg.Await(ctx, c.DatabaseWait, log, func(ctx context.Context) (err error) {
			s, err = postgres.Open(ctx, url, log)
			return err
		})
		return s, err
	}
	s, err := sqlite.Open(ctx, filepath.Join(c.Data, "tools.db"))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CheckAgents returns what agents need and the service lacks, one sentence for each
// fault.
func (s *Service) CheckAgents(ctx context.Context, q *toolsv1.CheckAgentsRequest) ([]string, error) {
	resp, err := s.calls.CheckAgents(ctx, q)
	var faults []string
	for _, f := range resp.GetFaults() {
		faults = append(faults, f.Message)
	}
	return faults, err
}

// RegisterPublic registers the services for clients.
func (s *Service) RegisterPublic(r grpc.ServiceRegistrar) {
	toolsv1.RegisterToolServiceServer(r, s.tools)
	toolsv1.RegisterOperationServiceServer(r, s.operations)
	toolsv1.RegisterProfileServiceServer(r, s.profiles)
	toolsv1.RegisterGrantServiceServer(r, s.grants)
}

// RegisterPeer registers the services for the session service.
func (s *Service) RegisterPeer(r grpc.ServiceRegistrar) {
	toolsv1.RegisterCallServiceServer(r, s.calls)
	toolsv1.RegisterLoginServiceServer(r, s.logins)
}

// Run renews the service's leases and watches operations until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.watch.Run(ctx) })
	if shared, ok := s.store.(store.Presence); ok {
		wg.Go(func() { shared.KeepPresent(ctx, s.engine.Self.ID) })
	}
	s.engine.Run(ctx)
	return nil
}

// Ready checks that the database can be reached.
func (s *Service) Ready(ctx context.Context) error { return s.store.Ping(ctx) }

// Close releases the running calls, whose commands keep running in the sandbox,
// ends the connections to MCP servers, and closes the database.
func (s *Service) Close() error {
	s.engine.Close()
	s.servers.Close()
	return s.store.Close()
}
