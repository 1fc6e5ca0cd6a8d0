package server

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

type workspaceServer struct {
	sandboxv1.UnimplementedWorkspaceServiceServer
	*Server
}

func (s *workspaceServer) EnsureWorkspace(ctx context.Context, r *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	want, err := s.want(c, r)
	if err != nil {
		return nil, status(err)
	}
	got, err := s.node.Ensure(c, want, func(w *box.Workspace) error { return seed(w, r.GetSeedFiles()) })
	if err != nil {
		return nil, status(err)
	}
	missing, err := s.missing(c, r.GetMounts())
	if err != nil {
		return nil, status(err)
	}
	if r.GetWarm() {
		s.node.Warm(ctx, c)
	}
	return &sandboxv1.EnsureWorkspaceResponse{Created: got.Created, Node: s.info.Node, WorkspaceGeneration: got.Generation, MissingMounts: missing}, nil
}

// want returns the requested configuration of a workspace.
func (s *Server) want(c box.Call, r *sandboxv1.EnsureWorkspaceRequest) (box.Want, error) {
	w, err := s.mounts(c, r)
	if err != nil {
		return w, err
	}
	w.Existing = r.GetMustExist()
	if r.GetNetwork() != nil {
		policy, err := s.policy(r.GetNetwork())
		if err != nil {
			return w, err
		}
		w.Network = &policy
	}
	if l := r.GetLimits(); l != nil {
		w.Limits = &box.Lower{
			MemoryBytes: l.GetMemoryBytes(), Processes: int64(l.GetProcesses()), CPUs: float64(l.GetCpuMillis()) / 1000,
			FileBytes: l.GetFileBytes(), OpenFiles: int64(l.GetOpenFiles()), OutputBytes: l.GetOutputBytes(), FloodBytes: l.GetFloodBytes(),
			WorkspaceBytes: l.GetWorkspaceBytes(), WorkspaceInodes: l.GetWorkspaceInodes(),
			Timeout: l.GetTimeout().AsDuration(), MaxTimeout: l.GetMaxTimeout().AsDuration(),
		}
	}
	return w, nil
}

// seed puts the first files into a new workspace, in which nothing runs yet.
func seed(w *box.Workspace, content map[string][]byte) error {
	if err := w.MakeStandardFolders(); err != nil {
		return err
	}
	t, err := openTree(w)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	for _, path := range slices.Sorted(maps.Keys(content)) {
		name := filename.Decode(path)
		if err := seedFile(w, t, name, content[path]); err != nil {
			return fmt.Errorf("seed file %s: %w", name, err)
		}
	}
	return nil
}

func seedFile(w *box.Workspace, t *files.Tree, name string, content []byte) error {
	d, err := t.Draft()
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write(content); err != nil {
		return err
	}
	if err := w.Reserve(d.Size(), 1); err != nil {
		return err
	}
	_, _, err = t.Put(d, name, files.Target{CreateOnly: true})
	w.Changed(d.Size(), 1)
	return err
}

func (s *workspaceServer) FenceWorkspace(ctx context.Context, r *sandboxv1.FenceWorkspaceRequest) (*sandboxv1.FenceWorkspaceResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err == nil {
		err = s.node.Fence(c)
	}
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.FenceWorkspaceResponse{}, nil
}

func (s *workspaceServer) SealWorkspace(ctx context.Context, r *sandboxv1.SealWorkspaceRequest) (*sandboxv1.SealWorkspaceResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err == nil {
		err = s.node.Seal(ctx, c)
	}
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.SealWorkspaceResponse{}, nil
}

func (s *workspaceServer) UnsealWorkspace(ctx context.Context, r *sandboxv1.UnsealWorkspaceRequest) (*sandboxv1.UnsealWorkspaceResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err == nil {
		err = s.node.Unseal(ctx, c)
	}
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.UnsealWorkspaceResponse{}, nil
}

func (s *workspaceServer) DeleteWorkspace(ctx context.Context, r *sandboxv1.DeleteWorkspaceRequest) (*sandboxv1.DeleteWorkspaceResponse, error) {
	k, err := key(ctx, r.GetSession())
	if err != nil {
		return nil, status(err)
	}
	if err := s.node.Delete(k, r.GetWorkspaceGeneration()); err != nil {
		return nil, status(err)
	}
	if s.info.Objects != nil && r.GetWorkspaceGeneration() == 0 {
		if err := s.dropPlaces(ctx, k, math.MaxInt64); err != nil {
			return nil, status(remoteError(err))
		}
	}
	return &sandboxv1.DeleteWorkspaceResponse{}, nil
}
