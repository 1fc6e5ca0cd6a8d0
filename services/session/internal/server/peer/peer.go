// Package peer answers the RPCs about other programs: MCP servers, programs that use models, runtimes that attach, and for
// operators and other services sandbox nodes and the work of environments.
package peer

import (
	"log/slog"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/attached"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Config is what the services need.
type Config struct {
	Store     store.Store
	Directory *directory.Directory
	Tools     *remote.Tools
	Nodes     *placement.Nodes
	// Proxy answers for models, and Attached has the runtimes.
	Proxy    *modelproxy.Proxy
	Attached *attached.Hub
	Log      *slog.Logger
}

// Register registers the services for clients.
func (c *Config) Register(r grpc.ServiceRegistrar) {
	sessionv1.RegisterMcpServiceServer(r, &MCPServer{Config: c})
	sessionv1.RegisterModelProxyServiceServer(r, &ModelProxyServer{Config: c})
	sessionv1.RegisterRuntimeServiceServer(r, &RuntimeServer{Config: c})
}

// RegisterPeer registers the services for operators, and for services that authenticate callers.
func (c *Config) RegisterPeer(r grpc.ServiceRegistrar) {
	sessionv1.RegisterNodeServiceServer(r, &nodeServer{Config: c})
	sessionv1.RegisterWorkServiceServer(r, &WorkServer{Config: c})
}
