package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
)

// addition is a requested repository that has no remote to clone from.
type addition struct {
	s    *repositoryServer
	ctx  context.Context //nolint:containedctx // ends with the request
	call box.Call
	r    *sandboxv1.AddRepositoryRequest
	made *sandboxv1.AddRepositoryResponse // the answer if there is none yet
}

func (s *repositoryServer) AddRepository(ctx context.Context, r *sandboxv1.AddRepositoryRequest) (*sandboxv1.AddRepositoryResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	branch := r.GetBranch()
	if branch == "" {
		branch = "main"
	}
	if err := errors.Join(repository.CheckName(r.GetDirectory()), repository.CheckRef(branch)); err != nil {
		return nil, status(err)
	}
	a := &addition{s: s, ctx: ctx, call: c, r: r, made: &sandboxv1.AddRepositoryResponse{
		Repository: &sandboxv1.Repository{Directory: r.GetDirectory(), Branch: branch, Url: r.GetUrl()}, Created: true,
	}}
	resp, err := a.run()
	return resp, status(err)
}

// run makes Git's folder beside the workspace and then puts it in place: a repository without its remote
// would pass for one that existed before.
func (a *addition) run() (*sandboxv1.AddRepositoryResponse, error) {
	if resp, err := a.before(); err != nil || resp != nil {
		return resp, err
	}
	commands, err := a.commands()
	if err != nil {
		return nil, err
	}
	b, err := a.s.node.NewServiceSandbox(a.ctx, a.call, "", false)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	// A repeat, or another call for the same repository, may have run before this call's turn.
	if resp, err := a.before(); err != nil || resp != nil {
		return resp, err
	}
	for _, argv := range commands {
		if _, err := a.s.runForService(b, argv, nil); err != nil {
			return nil, err
		}
	}
	change, err := a.change()
	if err != nil {
		return nil, err
	}
	change.Do = func(w *box.Workspace, intend func([]byte) error) ([]byte, error) { return a.adopt(w, b, intend) }
	return added(a.s.node.Mutate(a.call, change))
}

// commands returns the commands that make it.
func (a *addition) commands() ([][]string, error) {
	commands := [][]string{repository.Init(repository.CloneDir, a.made.GetRepository().GetBranch())}
	if a.r.GetUrl() == "" {
		return commands, nil
	}
	u, err := repository.ParseURL(a.r.GetUrl())
	if err != nil {
		return nil, err
	}
	if _, err := a.s.info.Repositories.Remotes.Way(u, repository.Fetch); err != nil {
		return nil, err
	}
	a.made.Repository.Url = u.String()
	return append(commands, repository.SetRemote(repository.CloneDir, u)), nil
}

// before returns the answer if the call was answered before, or if a repository exists; else nil.
func (a *addition) before() (*sandboxv1.AddRepositoryResponse, error) {
	directory := a.r.GetDirectory()
	change, err := a.change()
	if err != nil {
		return nil, err
	}
	if raw, done, err := a.s.node.Answered(a.call, change); err != nil || done {
		return added(raw, err)
	}
	_, repo, err := a.s.existing(a.call, directory)
	if err != nil || !repo {
		return nil, err
	}
	found, err := a.s.describe(a.ctx, a.call, directory)
	return &sandboxv1.AddRepositoryResponse{Repository: found}, err
}

// change returns the addition as the workspace sees it: Git's folder, which appears.
func (a *addition) change() (box.Change, error) {
	request, err := json.Marshal([]any{a.r.GetDirectory(), a.r.GetUrl(), a.r.GetBranch()})
	return box.Change{Method: "add-repository", Request: request, Failure: failure}, err
}

// adopt puts Git's folder in place, beside files that may exist.
func (a *addition) adopt(w *box.Workspace, b *box.ServiceSandbox, intend func([]byte) error) ([]byte, error) {
	u, err := b.Usage()
	if err != nil {
		return nil, err
	}
	if err := w.Reserve(u.Bytes, u.Inodes); err != nil {
		return nil, err
	}
	t, err := openSpaceFor(a.call.User, w) // a link may lead into a mount
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	defer w.Recount()
	to := repositories + "/" + a.r.GetDirectory()
	source := filepath.Join(b.Dir(), filepath.Base(repository.CloneDir), ".git")
	err = t.Adopt(source, to+"/.git", func(p files.RenameStep) error { return journalRename(p, a.made, intend) })
	if errors.Is(err, files.ErrExists) { // a command was first, or it is no folder
		return nil, fmt.Errorf("%w: %s has a .git", errRepositoryExists, to)
	}
	if err != nil {
		return nil, err
	}
	return proto.Marshal(a.made)
}

func added(raw []byte, err error) (*sandboxv1.AddRepositoryResponse, error) {
	if err != nil {
		return nil, err
	}
	resp := &sandboxv1.AddRepositoryResponse{}
	return resp, proto.Unmarshal(raw, resp)
}
