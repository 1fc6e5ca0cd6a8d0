package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
)

// clone is a requested clone.
type clone struct {
	s         *repositoryServer
	call      box.Call
	r         *sandboxv1.CloneRepositoryRequest
	url       repository.URL
	network   box.OperatorNetwork
	directory string
	report    func(phase string, percent int)
}

func (s *repositoryServer) CloneRepository(r *sandboxv1.CloneRepositoryRequest, stream sandboxv1.RepositoryService_CloneRepositoryServer) error {
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	ctx := stream.Context()
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return status(err)
	}
	p := &clone{s: s, call: c, r: r, directory: r.GetDirectory(), report: func(phase string, percent int) {
		// A broken stream ends the context, and with it the clone.
		_ = stream.Send(&sandboxv1.CloneRepositoryResponse{Kind: &sandboxv1.CloneRepositoryResponse_Progress{
			Progress: &sandboxv1.CloneProgress{Phase: phase, Percent: int32(percent)},
		}})
	}}
	if err := p.check(); err != nil {
		return status(err)
	}
	resp, err := p.run(stream)
	if err != nil {
		return status(err)
	}
	return stream.Send(resp)
}

// check refuses an invalid or forbidden request.
func (p *clone) check() (err error) {
	if p.url, p.network, err = p.s.way(p.r.GetUrl(), repository.Fetch); err != nil {
		return err
	}
	if p.directory == "" {
		p.directory = p.url.Name()
	}
	faults := []error{repository.CheckName(p.directory)}
	for _, name := range []string{p.r.GetRef(), p.r.GetBranch()} {
		if name != "" {
			faults = append(faults, repository.CheckRef(name))
		}
	}
	return errors.Join(faults...)
}

// run makes the clone beside the workspace and then puts it in place.
func (p *clone) run(stream sandboxv1.RepositoryService_CloneRepositoryServer) (*sandboxv1.CloneRepositoryResponse, error) {
	change, err := p.change(nil)
	if err != nil {
		return nil, err
	}
	if raw, done, err := p.s.node.Answered(p.call, change); err != nil || done {
		return repeatedClone(raw, err)
	}
	if taken, _, err := p.s.existing(p.call, p.directory); err != nil || taken {
		return nil, errors.Join(err, exists(taken, p.directory))
	}
	b, err := p.s.node.NewServiceSandbox(stream.Context(), p.call, p.network, false)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	// A repeat of the call may have run before this call's turn.
	if raw, done, err := p.s.node.Answered(p.call, change); err != nil || done {
		return repeatedClone(raw, err)
	}
	made, err := p.make(b)
	if err != nil {
		return nil, err
	}
	if change, err = p.change(func(w *box.Workspace, intend func([]byte) error) ([]byte, error) { return p.adopt(w, b, made, intend) }); err != nil {
		return nil, err
	}
	raw, err := p.s.node.Mutate(p.call, change)
	return answeredClone(raw, err)
}

func answeredClone(raw []byte, err error) (*sandboxv1.CloneRepositoryResponse, error) {
	if err != nil {
		return nil, err
	}
	return cloned(raw)
}

// repeatedClone returns the answer of an earlier request with the call's id.
func repeatedClone(raw []byte, err error) (*sandboxv1.CloneRepositoryResponse, error) {
	resp, err := answeredClone(raw, err)
	if err == nil {
		resp.Repeated = true
	}
	return resp, err
}

func exists(taken bool, directory string) error {
	if !taken {
		return nil
	}
	return fmt.Errorf("%w: %s/%s: remove it, or choose another directory", errRepositoryExists, repositories, directory)
}

// change returns the clone as the workspace sees it: a directory that appears.
func (p *clone) change(do func(*box.Workspace, func([]byte) error) ([]byte, error)) (box.Change, error) {
	request, err := json.Marshal([]any{p.r.GetUrl(), p.r.GetRef(), p.directory, p.r.GetDepth(), p.r.GetBranch()})
	return box.Change{
		Method: box.KeptMethod, Request: request, Failure: cloneFailure, Do: do,
	}, err
}

// cloneFailure is failure for answers that are remembered as long as the workspace. A taken path or a full
// workspace is temporary and not remembered.
func cloneFailure(err error) []byte {
	if errors.Is(err, errRepositoryExists) || errors.Is(err, box.ErrWorkspaceFull) {
		return nil
	}
	return failure(err)
}

// adopt puts the clone in place if it fits.
func (p *clone) adopt(w *box.Workspace, b *box.ServiceSandbox, made *sandboxv1.Repository, intend func([]byte) error) ([]byte, error) {
	u, err := b.Usage()
	if err != nil {
		return nil, err
	}
	if err := w.Reserve(u.Bytes, u.Inodes); err != nil {
		return nil, err
	}
	resp := &sandboxv1.CloneRepositoryResponse{Kind: &sandboxv1.CloneRepositoryResponse_Repository{Repository: made}}
	answer, err := proto.Marshal(resp)
	if err != nil {
		return nil, err
	}
	t, err := openSpaceFor(p.call.User, w) // a link may lead into a mount
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	defer w.Recount()
	to := repositories + "/" + p.directory
	err = t.Adopt(filepath.Join(b.Dir(), "clone"), to, func(p files.RenameStep) error { return journalRename(p, resp, intend) })
	if errors.Is(err, files.ErrExists) {
		return nil, exists(true, p.directory)
	}
	return answer, err
}

// make makes the clone and describes it.
func (p *clone) make(b *box.ServiceSandbox) (*sandboxv1.Repository, error) {
	if _, err := p.s.runForService(b, repository.Clone(p.url, int(p.r.GetDepth())), p.report); err != nil {
		return nil, err
	}
	if err := p.checkout(b); err != nil {
		return nil, err
	}
	out, err := p.s.runForService(b, repository.Describe([]string{"clone"}), nil)
	if err != nil {
		return nil, err
	}
	all := repository.ParseDescription(out.Kept)
	if len(all) != 1 {
		return nil, fmt.Errorf("%w: the cloned repository cannot be described", errGit)
	}
	return &sandboxv1.Repository{Directory: p.directory, Branch: all[0].Branch, Commit: all[0].Commit, Url: all[0].URL}, nil
}

// checkout checks out the files: of the session's branch if the remote has it, else of the requested
// reference, or of the remote's default branch.
func (p *clone) checkout(b *box.ServiceSandbox) error {
	ref, branch := p.r.GetRef(), p.r.GetBranch()
	const remote = "refs/remotes/origin/"
	if branch != "" && p.resolves(b, remote+branch) {
		return p.git(b, repository.Checkout(branch, remote+branch, true))
	}
	switch {
	case ref == "" && !p.resolves(b, "HEAD"): // the remote is empty
		if branch != "" {
			return p.git(b, repository.NewBranch(repository.CloneDir, branch))
		}
		return nil
	case ref == "" && branch == "":
		return p.git(b, repository.CheckoutHead())
	case ref == "":
		return p.git(b, repository.Checkout(branch, "HEAD", false))
	}
	at, err := p.find(b, ref)
	switch {
	case err != nil:
		return err
	case branch != "":
		return p.git(b, repository.Checkout(branch, at, false))
	case at == remote+ref:
		return p.git(b, repository.Checkout(ref, at, true))
	}
	return p.git(b, repository.Detach(at))
}

// find returns the full name of a branch or tag, or a commit. It fetches a commit that the clone lacks.
func (p *clone) find(b *box.ServiceSandbox, ref string) (string, error) {
	for _, full := range []string{"refs/remotes/origin/" + ref, "refs/tags/" + ref} {
		if p.resolves(b, full) {
			return full, nil
		}
	}
	if !repository.IsCommit(ref) {
		return "", fmt.Errorf("%w: the remote has no branch or tag %q", errGit, ref)
	}
	if p.resolves(b, ref) {
		return ref, nil
	}
	_, err := p.s.runForService(b, repository.FetchCommit(ref, int(p.r.GetDepth())), p.report)
	return ref, err
}

func (p *clone) resolves(b *box.ServiceSandbox, ref string) bool {
	_, err := p.s.runForService(b, repository.Resolve(repository.CloneDir, ref), nil)
	return err == nil
}

func (p *clone) git(b *box.ServiceSandbox, argv []string) error {
	_, err := p.s.runForService(b, argv, p.report)
	return err
}
