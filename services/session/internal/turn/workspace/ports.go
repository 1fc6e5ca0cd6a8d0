package workspace

import (
	"context"
	"io"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
)

// Sandbox is what this package needs of the sandbox service. A request goes to the node of its call
// or place. Refusals are the errors of package remote.
type Sandbox interface {
	EnsureWorkspace(ctx context.Context, r *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error)
	PutTree(ctx context.Context, node, digest string, from io.Reader) error
	FenceWorkspace(ctx context.Context, call *commonv1.CallRef) error
	SealWorkspace(ctx context.Context, call *commonv1.CallRef) error
	UnsealWorkspace(ctx context.Context, call *commonv1.CallRef) error

	CreateSnapshot(ctx context.Context, call *commonv1.CallRef, description string) (id string, err error)
	ListSnapshots(ctx context.Context, p remote.Place) ([]*sandboxv1.Snapshot, error)
	RestoreSnapshot(ctx context.Context, call *commonv1.CallRef, id string) error
	DeleteSnapshots(ctx context.Context, call *commonv1.CallRef, ids ...string) error
	ExportSnapshots(ctx context.Context, call *commonv1.CallRef) error
	ImportSnapshots(ctx context.Context, call *commonv1.CallRef, id string) (*sandboxv1.Snapshot, error)

	ListFiles(ctx context.Context, p remote.Place, r *sandboxv1.ListFilesRequest) (*sandboxv1.ListFilesResponse, error)

	CloneRepository(ctx context.Context, r *sandboxv1.CloneRepositoryRequest) (*sandboxv1.CloneRepositoryResponse, error)
	ListRepositories(ctx context.Context, p remote.Place) ([]*sandboxv1.Repository, error)
	CreateBranch(ctx context.Context, call *commonv1.CallRef, directory, branch string) error
}
