package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
)

var (
	errRepositoryExists   = errors.New("there is already something at the repository's directory")
	errRepositoryNotFound = errors.New("there is no repository in the directory")
	errBranchExists       = errors.New("there is already such a branch")
	errGit                = errors.New("git failed")
	errPushRejected       = errors.New("the remote did not take the push")
)

const (
	// repositories is the folder of the workspace that holds them.
	repositories = "repos"
	// quickTimeout limits commands that do not need the remote.
	quickTimeout = time.Minute
	// maxRepositories is how many are listed.
	maxRepositories = 256
	// maxStatus is how many bytes of a status are read.
	maxStatus = 4 << 20
	// maxConfiguration is how many bytes of a repository's configuration count.
	maxConfiguration = 64 << 10
)

// Repositories is the operator's configuration of repositories.
type Repositories struct {
	Remotes *repository.Remotes
	Timeout time.Duration // of commands that need the remote
}

type repositoryServer struct {
	sandboxv1.UnimplementedRepositoryServiceServer
	*Server
}

// inside returns the path of a repository in a sandbox that shows the workspace.
func inside(directory string) string { return box.WorkspacePath + "/" + repositories + "/" + directory }

// run runs Git in the session's own sandbox and returns its output. A failure of Git is an error.
func (s *repositoryServer) run(ctx context.Context, c box.Call, dir string, argv []string, most int, env ...string) (*repository.Bounded, error) {
	out, tail := &repository.Bounded{Most: most}, &repository.Tail{}
	end, err := s.node.RunInside(ctx, c, box.Task{
		Argv: argv, Env: append(repository.Environment("/nonexistent"), env...), Dir: dir, Timeout: quickTimeout, Stdout: out, Stderr: tail,
	})
	if err != nil {
		return nil, err
	}
	return out, failed(end, tail)
}

// fileTooLarge is the signal for a file above its limit.
const fileTooLarge = 25

// failed returns the error for Git's outcome; nil if Git succeeded.
func failed(o box.Outcome, said fmt.Stringer) error {
	text := said.String()
	switch {
	case o.Reason == box.Exited && o.ExitCode == 0:
		return nil
	case o.Reason == box.NotStarted && len(o.Hits) > 0:
		return fmt.Errorf("%w: it cannot be started: %s", errGit, o.Message)
	case o.Reason == box.NotStarted:
		return fmt.Errorf("%w: it cannot be started: %s: install it on the sandbox's node", errGit, o.Message)
	case o.Reason == box.WorkspaceLimit:
		return fmt.Errorf("%w: the repository does not fit into what is left of the workspace", box.ErrWorkspaceFull)
	case o.Signal == fileTooLarge || strings.Contains(text, fmt.Sprintf("died of signal %d", fileTooLarge)):
		return fmt.Errorf("%w: a file of the repository is larger than a file may be (sandbox.limits.file-size)", box.ErrWorkspaceFull)
	case o.Reason != box.Exited:
		return fmt.Errorf("%w: %s", errGit, o.Message)
	case text == "":
		return fmt.Errorf("%w with status %d", errGit, o.ExitCode)
	}
	return fmt.Errorf("%w: %s", errGit, text)
}

// existing reports whether a repository's directory exists, and whether it is a repository.
func (s *repositoryServer) existing(c box.Call, directory string) (taken, repo bool, err error) {
	w, release, err := s.node.View(c.Key, c.Generation)
	if err != nil {
		return false, false, err
	}
	defer release()
	t, err := openTree(w)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = t.Close() }()
	_, bad := t.Mark(repositories+"/"+directory, false)
	return bad == nil, isRepository(t, directory), nil
}

// isRepository looks for Git's folder, which only a link to an outside one lacks.
func isRepository(t *files.Tree, directory string) bool {
	i, err := t.Stat(repositories + "/" + directory + "/.git")
	return err == nil && i.Type == files.Directory
}

func (s *repositoryServer) need(c box.Call, directory string) error {
	_, repo, err := s.existing(c, directory)
	if err == nil && !repo {
		err = fmt.Errorf("%w: %s/%s", errRepositoryNotFound, repositories, directory)
	}
	return err
}

// admit refuses a caller that no longer holds the session.
func (s *repositoryServer) admit(c box.Call) error {
	_, release, err := s.node.Admit(c)
	if err == nil {
		release()
	}
	return err
}

func (s *repositoryServer) RemoveRepository(ctx context.Context, r *sandboxv1.RemoveRepositoryRequest) (*sandboxv1.RemoveRepositoryResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	request, err := json.Marshal([]any{r.GetDirectory()})
	if err != nil {
		return nil, err
	}
	_, err = s.node.Mutate(c, box.Change{
		Method: "remove-repository", Request: request, Failure: failure,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			t, err := openSpaceFor(c.User, w) // a link may lead into a mount
			if err != nil {
				return nil, err
			}
			defer func() { _ = t.Close() }()
			defer w.Recount()
			err = t.Remove(repositories+"/"+r.GetDirectory(), true, func(p files.RenameStep) error { return journalRename(p, nil, intend) })
			if errors.Is(err, files.ErrNotFound) {
				return nil, fmt.Errorf("%w: %s/%s", errRepositoryNotFound, repositories, r.GetDirectory())
			}
			return nil, err
		},
	})
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.RemoveRepositoryResponse{}, nil
}

func (s *repositoryServer) CreateBranch(ctx context.Context, r *sandboxv1.CreateBranchRequest) (*sandboxv1.CreateBranchResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	repo, err := s.branch(ctx, c, r)
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.CreateBranchResponse{Repository: repo}, nil
}

func (s *repositoryServer) branch(ctx context.Context, c box.Call, r *sandboxv1.CreateBranchRequest) (*sandboxv1.Repository, error) {
	if err := repository.CheckRef(r.GetBranch()); err != nil {
		return nil, err
	}
	if err := errors.Join(s.admit(c), s.need(c, r.GetDirectory())); err != nil {
		return nil, err
	}
	now, err := s.describe(ctx, c, r.GetDirectory())
	if err != nil || now.GetBranch() == r.GetBranch() {
		return now, err
	}
	commit, err := s.branchCommit(ctx, c, r.GetDirectory(), r.GetBranch())
	if err != nil {
		return nil, err
	}
	if commit != "" {
		return nil, fmt.Errorf("%w: %s", errBranchExists, r.GetBranch())
	}
	argv := repository.NewBranch(inside(r.GetDirectory()), r.GetBranch())
	if _, err := s.run(ctx, c, box.WorkspacePath, argv, 0); err != nil {
		return nil, err
	}
	return s.describe(ctx, c, r.GetDirectory())
}

// branchCommit returns the commit of a branch; empty if there is no such branch.
func (s *repositoryServer) branchCommit(ctx context.Context, c box.Call, directory, branch string) (string, error) {
	out, err := s.run(ctx, c, box.WorkspacePath, repository.Branch(inside(directory), branch), 64<<10)
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(string(out.Kept), "\n") {
		if commit, found := strings.CutSuffix(line, " refs/heads/"+branch); found && repository.IsCommit(commit) {
			return commit, nil
		}
	}
	return "", nil
}

func (s *repositoryServer) describe(ctx context.Context, c box.Call, directory string) (*sandboxv1.Repository, error) {
	all, err := s.describeAll(ctx, c, []string{directory})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: %s/%s", errRepositoryNotFound, repositories, directory)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (s *repositoryServer) describeAll(ctx context.Context, c box.Call, directories []string) ([]*sandboxv1.Repository, error) {
	out, err := s.run(ctx, c, box.WorkspacePath+"/"+repositories, repository.Describe(directories), maxStatus)
	if err != nil {
		return nil, err
	}
	var all []*sandboxv1.Repository
	for _, d := range repository.ParseDescription(out.Kept) {
		all = append(all, &sandboxv1.Repository{Directory: d.Directory, Branch: d.Branch, Commit: d.Commit, Url: d.URL})
	}
	return all, nil
}

func (s *repositoryServer) ListRepositories(ctx context.Context, r *sandboxv1.ListRepositoriesRequest) (*sandboxv1.ListRepositoriesResponse, error) {
	c, err := looker(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	names, err := s.names(ctx, c)
	if err != nil || len(names) == 0 {
		return &sandboxv1.ListRepositoriesResponse{}, status(err)
	}
	all, err := s.describeAll(ctx, c, names)
	return &sandboxv1.ListRepositoriesResponse{Repositories: all}, status(err)
}

// looker returns the call for an inspection of repositories. It acts as the requesting user: another user's
// mounts would take the sandbox from the user's commands.
func looker(ctx context.Context, session string, generation int64) (box.Call, error) {
	k, err := key(ctx, session)
	p, _ := principal.From(ctx)
	return box.Call{Key: k, ID: "repositories", Generation: generation, User: p.User}, err
}

// names returns the directories that hold repositories.
func (s *repositoryServer) names(ctx context.Context, c box.Call) ([]string, error) {
	w, release, err := s.node.View(c.Key, c.Generation)
	if err != nil {
		return nil, err
	}
	defer release()
	t, err := openTree(w)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	found, _, err := t.List(ctx, repositories, "", 16*maxRepositories, nil)
	if errors.Is(err, files.ErrNotFound) || errors.Is(err, files.ErrWrongType) {
		return nil, nil
	}
	var names []string
	for _, i := range found {
		name := strings.TrimPrefix(i.Path, repositories+"/")
		if len(names) < maxRepositories && repository.CheckName(name) == nil && isRepository(t, name) {
			names = append(names, name)
		}
	}
	return names, err
}

func (s *repositoryServer) GetRepositoryStatus(ctx context.Context, r *sandboxv1.GetRepositoryStatusRequest) (*sandboxv1.GetRepositoryStatusResponse, error) {
	c, err := looker(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	resp, err := s.status(ctx, c, r)
	return resp, status(err)
}

func (s *repositoryServer) status(ctx context.Context, c box.Call, r *sandboxv1.GetRepositoryStatusRequest) (*sandboxv1.GetRepositoryStatusResponse, error) {
	directory := r.GetDirectory()
	if err := s.need(c, directory); err != nil {
		return nil, err
	}
	repo, err := s.describe(ctx, c, directory)
	if err != nil {
		return nil, err
	}
	set, err := s.run(ctx, c, box.WorkspacePath, repository.ConfigurationCommand(inside(directory)), maxConfiguration)
	if err != nil {
		return nil, err
	}
	counts := repository.ParseConfiguration(set.Kept)
	out, err := s.run(ctx, c, box.WorkspacePath, repository.StatusCommand(inside(directory), counts), maxStatus, counts.Environment()...)
	if err != nil {
		return nil, err
	}
	st, err := repository.ParseStatus(out.Kept, out.Cut)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGit, err)
	}
	resp := &sandboxv1.GetRepositoryStatusResponse{
		Repository: &sandboxv1.Repository{Directory: directory, Branch: st.Branch, Commit: st.Commit, Url: repo.GetUrl()},
		Upstream:   st.Upstream, Ahead: int32(st.Ahead), Behind: int32(st.Behind), Truncated: st.Truncated,
	}
	for _, f := range st.Changes {
		resp.Files = append(resp.Files, &sandboxv1.RepositoryChange{Path: f.Path, OldPath: f.Old, Index: f.Index, Worktree: f.Worktree})
	}
	return resp, nil
}

// way returns the way out to a remote for one use.
func (s *repositoryServer) way(url string, use repository.Use) (repository.URL, box.OperatorNetwork, error) {
	u, err := repository.ParseURL(url)
	if err != nil {
		return u, "", err
	}
	var o egress.Operator
	if o, err = s.info.Repositories.Remotes.Way(u, use); err != nil {
		return u, "", err
	}
	encoded, err := s.info.Network.EncodeOperator(o)
	return u, encoded, err
}

// runForService runs Git in a separate sandbox.
func (s *repositoryServer) runForService(b *box.ServiceSandbox, argv []string, tell func(string, int), env ...string) (*repository.Bounded, error) {
	out, said := &repository.Bounded{Most: 64 << 10}, &repository.Progress{Report: tell}
	end, err := b.Run(box.Task{
		Argv: argv, Env: slices.Concat(b.Environment(), repository.Environment(box.WorkspacePath), env), Dir: box.WorkspacePath,
		Timeout: s.info.Repositories.Timeout, Stdout: out, Stderr: said,
	})
	if err != nil {
		return nil, err
	}
	return out, failed(end, &said.Tail)
}

// cloned decodes the answer of a clone.
func cloned(raw []byte) (*sandboxv1.CloneRepositoryResponse, error) {
	resp := &sandboxv1.CloneRepositoryResponse{}
	return resp, proto.Unmarshal(raw, resp)
}
