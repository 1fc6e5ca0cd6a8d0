package remote

import (
	"context"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Sandbox is the sandbox service, on all its nodes. A request goes to the node of its call or
// place; an empty name means the only node.
type Sandbox struct {
	health       healthpb.HealthClient
	workspaces   sandboxv1.WorkspaceServiceClient
	snapshots    sandboxv1.SnapshotServiceClient
	repositories sandboxv1.RepositoryServiceClient
	files        sandboxv1.FileServiceClient
	execs        sandboxv1.ExecServiceClient
}

// NewSandbox returns the sandbox service behind a connection.
func NewSandbox(to grpc.ClientConnInterface) *Sandbox {
	c := rpc.WithErrors(rpc.AsService(to), Error)
	return &Sandbox{
		health: healthpb.NewHealthClient(c), workspaces: sandboxv1.NewWorkspaceServiceClient(c),
		snapshots: sandboxv1.NewSnapshotServiceClient(c), repositories: sandboxv1.NewRepositoryServiceClient(c),
		files: sandboxv1.NewFileServiceClient(c), execs: sandboxv1.NewExecServiceClient(c),
	}
}

// Place is where a session's workspace is. Generation 0 stands for any.
type Place struct {
	Session    string // as sessions/{session}
	Node       string
	Generation int64
}

// to directs a request to the node of a call.
func to(ctx context.Context, call *commonv1.CallRef) context.Context {
	return node.At(ctx, call.GetNode())
}

// Health returns an error if a node does not answer.
func (s *Sandbox) Health(ctx context.Context, name string) error {
	_, err := s.health.Check(node.At(ctx, name), &healthpb.HealthCheckRequest{})
	return err
}

// Capabilities returns what a node can do.
func (s *Sandbox) Capabilities(ctx context.Context, name string) (*sandboxv1.GetCapabilitiesResponse, error) {
	return s.workspaces.GetCapabilities(node.At(ctx, name), &sandboxv1.GetCapabilitiesRequest{})
}

// EnsureWorkspace makes the session's workspace unless it exists.
func (s *Sandbox) EnsureWorkspace(ctx context.Context, r *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error) {
	return s.workspaces.EnsureWorkspace(to(ctx, r.GetCall()), r)
}

// FenceWorkspace makes the sandbox refuse lower epochs than the call's.
func (s *Sandbox) FenceWorkspace(ctx context.Context, call *commonv1.CallRef) error {
	_, err := s.workspaces.FenceWorkspace(to(ctx, call), &sandboxv1.FenceWorkspaceRequest{Call: call})
	return err
}

// SealWorkspace forbids changes of the workspace.
func (s *Sandbox) SealWorkspace(ctx context.Context, call *commonv1.CallRef) error {
	_, err := s.workspaces.SealWorkspace(to(ctx, call), &sandboxv1.SealWorkspaceRequest{Call: call})
	return err
}

// UnsealWorkspace allows changes again.
func (s *Sandbox) UnsealWorkspace(ctx context.Context, call *commonv1.CallRef) error {
	_, err := s.workspaces.UnsealWorkspace(to(ctx, call), &sandboxv1.UnsealWorkspaceRequest{Call: call})
	return err
}

// DeleteWorkspace deletes the workspace. With a generation it deletes only what the node has
// of this or a lower one.
func (s *Sandbox) DeleteWorkspace(ctx context.Context, p Place) error {
	_, err := s.workspaces.DeleteWorkspace(node.At(ctx, p.Node), &sandboxv1.DeleteWorkspaceRequest{
		Session: p.Session, WorkspaceGeneration: p.Generation,
	})
	return err
}

// DeleteUserStorage deletes the files that the acting user has stored on a node.
func (s *Sandbox) DeleteUserStorage(ctx context.Context, name string) error {
	_, err := s.workspaces.DeleteUserStorage(node.At(ctx, name), &sandboxv1.DeleteUserStorageRequest{})
	return err
}
