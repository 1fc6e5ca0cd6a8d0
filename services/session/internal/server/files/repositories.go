package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

// repositoryServer implements RepositoryService from the sandbox. It has no state of its own.
type repositoryServer struct {
	sessionv1.UnimplementedRepositoryServiceServer
	workspaces
}

// splitRepository splits `sessions/{session}/repositories/{repository}`.
func splitRepository(name string) (session, directory string) {
	session, directory, _ = strings.Cut(name, "/repositories/")
	return session, directory
}

func repositoryProto(session string, r *sandboxv1.Repository) *sessionv1.Repository {
	return &sessionv1.Repository{
		Name: session + "/repositories/" + r.GetDirectory(), Branch: r.GetBranch(), Commit: r.GetCommit(), Url: r.GetUrl(),
	}
}

func (s *repositoryServer) ListRepositories(
	ctx context.Context, r *sessionv1.ListRepositoriesRequest,
) (*sessionv1.ListRepositoriesResponse, error) {
	if _, err := s.Workspaces.Owned(ctx, r.Parent); err != nil {
		return nil, err
	}
	place, err := s.Workspaces.At(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	found, err := s.Sandbox.ListRepositories(ctx, placement.In(place, r.Parent))
	err = placement.LostWorkspace(err, place, r.Parent)
	if errors.Is(err, remote.ErrNoWorkspace) {
		return &sessionv1.ListRepositoriesResponse{}, nil
	}
	if err != nil {
		return nil, apierr.Forward(err)
	}
	resp := &sessionv1.ListRepositoriesResponse{}
	for _, one := range found {
		resp.Repositories = append(resp.Repositories, repositoryProto(r.Parent, one))
	}
	return resp, nil
}

func (s *repositoryServer) AddRepository(
	ctx context.Context, r *sessionv1.AddRepositoryRequest,
) (*sessionv1.AddRepositoryResponse, error) {
	return retryStaleEpoch(func() (*sessionv1.AddRepositoryResponse, error) { return s.add(ctx, r) })
}

func (s *repositoryServer) add(ctx context.Context, r *sessionv1.AddRepositoryRequest) (*sessionv1.AddRepositoryResponse, error) {
	branch, err := s.branch(r)
	if err != nil {
		return nil, err
	}
	session, err := s.Workspaces.Owned(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	call, _, err := s.callRef(ctx, r.Parent, "repository", "AddRepository", r.RequestId)
	if err != nil {
		return nil, err
	}
	if call.Node == "" {
		if err := s.Workspaces.Nodes.Place(ctx, s.Store, call); err != nil {
			return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
		}
	}
	if err := s.ensureWorkspace(ctx, session, call); err != nil {
		return nil, err
	}
	var made *sandboxv1.Repository
	if r.Url == "" {
		made, err = s.Sandbox.AddRepository(ctx, call, r.RepositoryId, branch)
	} else {
		var cloned *sandboxv1.CloneRepositoryResponse
		cloned, err = s.Sandbox.CloneRepository(ctx, &sandboxv1.CloneRepositoryRequest{
			Call: call, Url: r.Url, Ref: r.Ref, Directory: r.RepositoryId, Depth: r.Depth, Branch: branch,
		})
		made = cloned.GetRepository()
	}
	if err != nil {
		return nil, forward(err, r.Parent, r.RequestId)
	}
	if err := s.keepPush(ctx, r.Parent, made.GetDirectory(), &sessionv1.PushedRepository{Url: r.Url, Branch: branch}, r.Push == agent.PushTurnEnd); err != nil {
		return nil, err
	}
	return &sessionv1.AddRepositoryResponse{Repository: repositoryProto(r.Parent, made)}, nil
}

// keepPush stores whether a session's repository is pushed at the end of turns. It changes nothing if that is
// known, so that repeated requests may repeat it.
func (s *repositoryServer) keepPush(ctx context.Context, session, directory string, p *sessionv1.PushedRepository, pushed bool) error {
	now, err := s.Workspaces.Owned(ctx, session)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(now.PushedRepositories, func(x *sessionv1.PushedRepository) bool { return x.Directory == directory })
	if !pushed && !known {
		return nil
	}
	_, err = s.Store.UpdateSession(ctx, store.UpdateSession{Key: request.Key(ctx, session), Change: func(b *sessionv1.Session) error {
		b.PushedRepositories = slices.DeleteFunc(b.PushedRepositories, func(x *sessionv1.PushedRepository) bool { return x.Directory == directory })
		if pushed {
			b.PushedRepositories = append(b.PushedRepositories, &sessionv1.PushedRepository{Directory: directory, Url: p.Url, Branch: p.Branch})
		}
		return nil
	}})
	return refusal.Store(err, refusal.Subject{Session: session})
}

// branch returns the branch of the request, or the session's own branch.
func (s *repositoryServer) branch(r *sessionv1.AddRepositoryRequest) (string, error) {
	wrong := func(field, text string) error {
		return apierr.New(codes.InvalidArgument, refusal.Domain, apierr.ReasonInvalidRequest, field+": "+text, apierr.Field(field, text))
	}
	switch {
	case r.Url == "" && r.Push == agent.PushTurnEnd:
		return "", wrong("push", "only a clone of a url can be pushed at the end of turns")
	case r.Url == "" && r.RepositoryId == "":
		return "", wrong("repository_id", "a new repository needs one; a clone needs a url")
	case r.SessionBranch && r.Branch != "":
		return "", wrong("branch", "with session_branch the branch is named by the server: leave it out")
	case r.SessionBranch:
		return workspace.SessionBranch(s.RepositoryBranch, strings.TrimPrefix(r.Parent, "sessions/")), nil
	}
	return r.Branch, nil
}

func (s *repositoryServer) GetRepositoryStatus(
	ctx context.Context, r *sessionv1.GetRepositoryStatusRequest,
) (*sessionv1.GetRepositoryStatusResponse, error) {
	session, directory := splitRepository(r.Name)
	if _, err := s.Workspaces.Owned(ctx, session); err != nil {
		return nil, err
	}
	place, err := s.Workspaces.At(ctx, session)
	if err != nil {
		return nil, err
	}
	st, err := s.Sandbox.RepositoryStatus(ctx, placement.In(place, session), directory)
	if err != nil {
		return nil, apierr.Forward(placement.LostWorkspace(err, place, session))
	}
	resp := &sessionv1.GetRepositoryStatusResponse{
		Repository: repositoryProto(session, st.GetRepository()), Upstream: st.GetUpstream(), Ahead: st.GetAhead(), Behind: st.GetBehind(), Truncated: st.GetTruncated(),
	}
	for _, f := range st.GetFiles() {
		resp.Files = append(resp.Files, &sessionv1.RepositoryChange{Path: f.GetPath(), OldPath: f.GetOldPath(), Index: f.GetIndex(), Worktree: f.GetWorktree()})
	}
	return resp, nil
}

func (s *repositoryServer) RemoveRepository(
	ctx context.Context, r *sessionv1.RemoveRepositoryRequest,
) (*sessionv1.RemoveRepositoryResponse, error) {
	return retryStaleEpoch(func() (*sessionv1.RemoveRepositoryResponse, error) { return s.remove(ctx, r) })
}

func (s *repositoryServer) remove(ctx context.Context, r *sessionv1.RemoveRepositoryRequest) (*sessionv1.RemoveRepositoryResponse, error) {
	name, directory := splitRepository(r.Name)
	session, err := s.Workspaces.Owned(ctx, name)
	if err != nil {
		return nil, err
	}
	if session.ActiveTurn != "" {
		return nil, refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
			fmt.Sprintf("Session %s has an active turn, which may work in the repository. Wait until it has ended, or interrupt it.", name),
			apierr.Precondition("TURN_ACTIVE", name, "a turn is active"))
	}
	call, place, err := s.callRef(ctx, name, "repository", "RemoveRepository", r.RequestId)
	if err != nil {
		return nil, err
	}
	if err := s.Sandbox.RemoveRepository(ctx, call, directory); err != nil {
		return nil, forward(placement.LostWorkspace(err, place, name), name, r.RequestId)
	}
	if err := s.keepPush(ctx, name, directory, nil, false); err != nil {
		return nil, err
	}
	return &sessionv1.RemoveRepositoryResponse{}, nil
}

func (s *repositoryServer) PushRepository(
	ctx context.Context, r *sessionv1.PushRepositoryRequest,
) (*sessionv1.PushRepositoryResponse, error) {
	return retryStaleEpoch(func() (*sessionv1.PushRepositoryResponse, error) { return s.push(ctx, r) })
}

func (s *repositoryServer) push(ctx context.Context, r *sessionv1.PushRepositoryRequest) (*sessionv1.PushRepositoryResponse, error) {
	session, directory := splitRepository(r.Name)
	if _, err := s.Workspaces.Owned(ctx, session); err != nil {
		return nil, err
	}
	call, place, err := s.callRef(ctx, session, "repository", "PushRepository", r.RequestId)
	if err != nil {
		return nil, err
	}
	done, err := s.Sandbox.PushRepository(ctx, &sandboxv1.PushRepositoryRequest{Call: call, Directory: directory, Url: r.Url, Branch: r.Branch})
	if err != nil {
		return nil, forward(placement.LostWorkspace(err, place, session), session, r.RequestId)
	}
	return &sessionv1.PushRepositoryResponse{Ref: done.GetRef(), OldCommit: done.GetOldCommit(), NewCommit: done.GetNewCommit(), UpToDate: done.GetUpToDate()}, nil
}
