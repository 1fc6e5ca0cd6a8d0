// Package server implements the sandbox service's RPCs on a node's boxes and the files in them. It
// translates requests into calls, and errors into statuses with the reasons of the contract.
package server

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
	"github.com/fairlead/fairlead/services/sandbox/internal/tree"
)

// Info is what the RPCs need to know, and report, about a node.
type Info struct {
	Node     string
	Level    string
	Driver   string
	Includes []string
	// NetworkKind is the most that commands may reach: `none` or `allowlist`.
	NetworkKind string
	// Quota is how the size of workspaces is limited.
	Quota string
	// Network checks the network policies of workspaces.
	Network *egress.Network
	// Mounts are the operator's mounts and variables.
	Mounts *mount.Set
	// Trees are the read-only folders of sessions; nil: the driver cannot show any.
	Trees *tree.Store
	// Snapshots is how many a session may have. SnapshotBytes is the size on disk up to which another one
	// is made.
	Snapshots     int
	SnapshotBytes int64
	// Objects is where snapshots are copied to; nil: they are not copied.
	Objects objectstore.Store
	// Repositories is the operator's configuration of repositories.
	Repositories Repositories
}

// Server serves the services of a node.
type Server struct {
	node    *box.Node
	info    Info
	readers sync.WaitGroup // goroutines that read requests of streams
}

// New returns a server for a node.
func New(n *box.Node, i Info) *Server { return &Server{node: n, info: i} }

// Register registers the services, all of them internal.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	sandboxv1.RegisterExecServiceServer(r, &execServer{Server: s})
	sandboxv1.RegisterFileServiceServer(r, &fileServer{Server: s})
	sandboxv1.RegisterRepositoryServiceServer(r, &repositoryServer{Server: s})
	sandboxv1.RegisterSnapshotServiceServer(r, &snapshotServer{Server: s})
	sandboxv1.RegisterWorkspaceServiceServer(r, &workspaceServer{Server: s})
}

// Wait waits for goroutines of ended streams. No RPC may run any more.
func (s *Server) Wait() { s.readers.Wait() }

// key returns the session of a request, in the tenant of the principal.
func key(ctx context.Context, session string) (box.Key, error) {
	tenant := principal.Tenant(ctx)
	if tenant == "" {
		return box.Key{}, errNoPrincipal
	}
	return box.Key{Tenant: tenant, Session: strings.TrimPrefix(session, "sessions/")}, nil
}

func call(ctx context.Context, c *commonv1.CallRef) (box.Call, error) {
	k, err := key(ctx, c.GetSession())
	p, _ := principal.From(ctx)
	return box.Call{
		Key: k, Holder: strings.TrimPrefix(c.GetHolder(), "sessions/"), Epoch: c.GetEpoch(), ID: c.GetCallId(), Node: c.GetNode(), Generation: c.GetWorkspaceGeneration(), User: p.User,
	}, err
}
