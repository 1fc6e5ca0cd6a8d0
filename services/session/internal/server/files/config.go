// Package files answers the RPCs about files: those of users, and those and the repositories of sessions' workspaces.
package files

import (
	"context"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Config is what the services need.
type Config struct {
	Store store.Store
	// Files keeps users' files; nil: there is no store for them. TTL is how long a file is kept that names no time.
	Files *blob.Blobs
	TTL   time.Duration
	Log   *slog.Logger
	// Workspaces finds sessions' workspaces, and Sandbox has their files.
	Workspaces *placement.Workspaces
	Sandbox    Sandbox
	// Skills are those of new workspaces.
	Skills *skill.Library
	// RepositoryBranch is the pattern of sessions' own branches.
	RepositoryBranch string
}

// Sandbox is the part of the sandbox service that has files and repositories.
type Sandbox interface {
	skill.Sandbox
	AddRepository(ctx context.Context, call *commonv1.CallRef, directory, branch string) (*sandboxv1.Repository, error)
	CloneRepository(ctx context.Context, r *sandboxv1.CloneRepositoryRequest) (*sandboxv1.CloneRepositoryResponse, error)
	ListRepositories(ctx context.Context, p remote.Place) ([]*sandboxv1.Repository, error)
	RepositoryStatus(ctx context.Context, p remote.Place, directory string) (*sandboxv1.GetRepositoryStatusResponse, error)
	RemoveRepository(ctx context.Context, call *commonv1.CallRef, directory string) error
	PushRepository(ctx context.Context, r *sandboxv1.PushRepositoryRequest) (*sandboxv1.PushRepositoryResponse, error)
	StatFile(ctx context.Context, p remote.Place, path string) (*sandboxv1.FileInfo, error)
	ListFiles(ctx context.Context, p remote.Place, r *sandboxv1.ListFilesRequest) (*sandboxv1.ListFilesResponse, error)
	ReadFile(ctx context.Context, p remote.Place, r *sandboxv1.ReadFileRequest) (grpc.ServerStreamingClient[sandboxv1.ReadFileResponse], error)
	WriteFile(ctx context.Context, start *sandboxv1.WriteFileStart, from remote.Pieces, epoch remote.Epoch) (*sandboxv1.WriteFileResponse, error)
	UnpackFiles(ctx context.Context, start *sandboxv1.UnpackFilesStart, from remote.Pieces, epoch remote.Epoch) (*sandboxv1.FileInfo, error)
	MoveFile(ctx context.Context, r *sandboxv1.MoveFileRequest) (*sandboxv1.FileInfo, error)
	DeleteFile(ctx context.Context, r *sandboxv1.DeleteFileRequest) error
	ExportFiles(ctx context.Context, p remote.Place, r *sandboxv1.ExportWorkspaceRequest) (io.Reader, error)
}

// Register registers the services for clients.
func (c *Config) Register(r grpc.ServiceRegistrar) {
	sessionv1.RegisterFileServiceServer(r, &FileServer{Config: c})
	sessionv1.RegisterSessionFileServiceServer(r, &sessionFileServer{workspaces: workspaces{c}})
	sessionv1.RegisterRepositoryServiceServer(r, &repositoryServer{workspaces: workspaces{c}})
}
