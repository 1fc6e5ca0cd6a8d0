package remote

import (
	"context"
	"errors"
	"fmt"
	"io"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/node"
)

// AddRepository makes an empty repository.
func (s *Sandbox) AddRepository(ctx context.Context, call *commonv1.CallRef, directory, branch string) (*sandboxv1.Repository, error) {
	added, err := s.repositories.AddRepository(to(ctx, call), &sandboxv1.AddRepositoryRequest{Call: call, Directory: directory, Branch: branch})
	return added.GetRepository(), err
}

// CloneRepository clones a repository and waits for the end: the answer has the repository.
func (s *Sandbox) CloneRepository(ctx context.Context, r *sandboxv1.CloneRepositoryRequest) (made *sandboxv1.CloneRepositoryResponse, err error) {
	ctx, cancel := context.WithCancel(to(ctx, r.GetCall()))
	defer cancel()
	stream, err := s.repositories.CloneRepository(ctx, r)
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && made != nil:
			return made, nil
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("the clone of %s has no end", r.GetDirectory())
		case err != nil:
			return nil, err
		case m.GetRepository() != nil:
			made = m
		}
	}
}

// ListRepositories returns the workspace's repositories.
func (s *Sandbox) ListRepositories(ctx context.Context, p Place) ([]*sandboxv1.Repository, error) {
	found, err := s.repositories.ListRepositories(node.At(ctx, p.Node), &sandboxv1.ListRepositoriesRequest{
		Session: p.Session, WorkspaceGeneration: p.Generation,
	})
	return found.GetRepositories(), err
}

// RepositoryStatus returns what has changed in a repository.
func (s *Sandbox) RepositoryStatus(ctx context.Context, p Place, directory string) (*sandboxv1.GetRepositoryStatusResponse, error) {
	return s.repositories.GetRepositoryStatus(node.At(ctx, p.Node), &sandboxv1.GetRepositoryStatusRequest{
		Session: p.Session, WorkspaceGeneration: p.Generation, Directory: directory,
	})
}

// RemoveRepository removes a repository from the workspace.
func (s *Sandbox) RemoveRepository(ctx context.Context, call *commonv1.CallRef, directory string) error {
	_, err := s.repositories.RemoveRepository(to(ctx, call), &sandboxv1.RemoveRepositoryRequest{Call: call, Directory: directory})
	return err
}

// CreateBranch creates a branch from the current commit, and switches to it.
func (s *Sandbox) CreateBranch(ctx context.Context, call *commonv1.CallRef, directory, branch string) error {
	_, err := s.repositories.CreateBranch(to(ctx, call), &sandboxv1.CreateBranchRequest{Call: call, Directory: directory, Branch: branch})
	return err
}

// PushRepository pushes a branch to a remote.
func (s *Sandbox) PushRepository(ctx context.Context, r *sandboxv1.PushRepositoryRequest) (*sandboxv1.PushRepositoryResponse, error) {
	return s.repositories.PushRepository(to(ctx, r.GetCall()), r)
}
