package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
)

// maxShallow is the largest size in bytes of the list of commits at which a history is cut off.
const maxShallow = 1 << 20

func (s *repositoryServer) PushRepository(ctx context.Context, r *sandboxv1.PushRepositoryRequest) (*sandboxv1.PushRepositoryResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	resp, err := s.push(ctx, c, r)
	return resp, status(err)
}

// push asks the repository for its commit in the session's own sandbox. It then pushes that commit from a
// sandbox that reads only the repository's objects.
func (s *repositoryServer) push(ctx context.Context, c box.Call, r *sandboxv1.PushRepositoryRequest) (*sandboxv1.PushRepositoryResponse, error) {
	directory := r.GetDirectory()
	u, way, err := s.way(r.GetUrl(), repository.Push)
	if err != nil {
		return nil, err
	}
	if err := s.need(c, directory); err != nil {
		return nil, err
	}
	branch, commit, err := s.toPush(ctx, c, r)
	if err != nil {
		return nil, err
	}
	if known, err := s.upToDate(ctx, c, r, commit); err != nil || known {
		return &sandboxv1.PushRepositoryResponse{Ref: "refs/heads/" + branch, OldCommit: commit, NewCommit: commit, UpToDate: true}, err
	}
	c.Operation = true
	b, err := s.node.NewServiceSandbox(ctx, c, way, true)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if _, err := s.runForService(b, repository.PreparePush(commit), nil); err != nil {
		return nil, err
	}
	if err := s.copyShallow(c, directory, b); err != nil {
		return nil, err
	}
	objects := repository.Objects(box.HomePath + "/" + repositories + "/" + directory + "/.git/objects")
	out, bad := s.runForService(b, repository.PushCommit(u, commit, branch), nil, objects)
	if out == nil {
		return nil, bad
	}
	done, err := repository.ParsePush(out.Kept, commit, branch)
	switch {
	case err == nil && done.Rejected != "":
		return nil, fmt.Errorf("%w: %s", errPushRejected, done.Rejected)
	case bad != nil:
		return nil, bad
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errGit, err)
	}
	return &sandboxv1.PushRepositoryResponse{Ref: "refs/heads/" + branch, OldCommit: done.Old, NewCommit: commit, UpToDate: done.UpToDate}, nil
}

// toPush returns the requested branch, or the current one, and its commit.
func (s *repositoryServer) toPush(ctx context.Context, c box.Call, r *sandboxv1.PushRepositoryRequest) (branch, commit string, err error) {
	branch = r.GetBranch()
	if branch == "" {
		now, err := s.describe(ctx, c, r.GetDirectory())
		if err != nil {
			return "", "", err
		}
		if branch = now.GetBranch(); branch == "" {
			return "", "", fmt.Errorf("%w: the repository has no current branch: name the branch to push", errGit)
		}
	}
	if err := repository.CheckRef(branch); err != nil {
		return "", "", err
	}
	commit, err = s.branchCommit(ctx, c, r.GetDirectory(), branch)
	if err == nil && commit == "" {
		err = fmt.Errorf("%w: the branch %s has no commit", errGit, branch)
	}
	return branch, commit, err
}

// upToDate reports whether no push is needed, because the remote already had the commit.
func (s *repositoryServer) upToDate(ctx context.Context, c box.Call, r *sandboxv1.PushRepositoryRequest, commit string) (bool, error) {
	if !r.GetOnlyNew() {
		return false, nil
	}
	out, err := s.run(ctx, c, box.WorkspacePath, repository.Containing(inside(r.GetDirectory()), commit), 1<<10)
	return err == nil && len(out.Kept) > 0, err
}

// copyShallow tells the prepared repository where the history was cut off. It takes only commit ids from
// the workspace.
func (s *repositoryServer) copyShallow(c box.Call, directory string, b *box.ServiceSandbox) error {
	w, release, err := s.node.View(c.Key, c.Generation)
	if err != nil {
		return err
	}
	defer release()
	t, err := openTree(w)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	f, err := t.Read(repositories + "/" + directory + "/.git/shallow")
	if errors.Is(err, files.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var content strings.Builder
	if err := f.Bytes(0, maxShallow, func(piece []byte) error { content.Write(piece); return nil }); err != nil {
		return err
	}
	var commits strings.Builder
	for line := range strings.SplitSeq(content.String(), "\n") {
		if repository.IsCommit(line) {
			commits.WriteString(line + "\n")
		}
	}
	if commits.Len() == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(b.Dir(), repository.ShallowFile), []byte(commits.String()), 0o644)
}
