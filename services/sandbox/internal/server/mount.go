package server

import (
	"context"
	"slices"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/variable"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// mounts checks the mounts and variables that a request sets.
func (s *Server) mounts(c box.Call, r *sandboxv1.EnsureWorkspaceRequest) (w box.Want, err error) {
	if r.GetMounts() != nil {
		names := slices.Sorted(slices.Values(r.GetMounts().GetNames()))
		if _, err := s.info.Mounts.For(c.Tenant, c.User, names); err != nil {
			return w, err
		}
		w.Mounts = &names
	}
	if r.GetTrees() != nil {
		all := make([]box.Tree, 0, len(r.GetTrees().GetTrees()))
		for _, t := range r.GetTrees().GetTrees() {
			all = append(all, box.Tree{Name: t.GetName(), Digest: t.GetDigest()})
		}
		slices.SortFunc(all, func(a, b box.Tree) int { return strings.Compare(a.Name, b.Name) })
		w.Trees = &all
	}
	if r.GetEnvironment() == nil {
		return w, nil
	}
	w.Environment = &box.Environment{User: c.User, Variables: r.GetEnvironment().GetVariables()}
	for name, value := range w.Environment.Variables {
		if err := variable.Check(name, value); err != nil {
			return w, invalid("environment.variables["+name+"]", "%v", err)
		}
	}
	return w, nil
}

func (s *workspaceServer) DeleteUserStorage(ctx context.Context, _ *sandboxv1.DeleteUserStorageRequest) (*sandboxv1.DeleteUserStorageResponse, error) {
	p, ok := principal.From(ctx)
	if !ok {
		return nil, status(errNoPrincipal)
	}
	if err := s.info.Mounts.DeleteStorage(p.Tenant, p.User); err != nil {
		return nil, status(err)
	}
	return &sandboxv1.DeleteUserStorageResponse{}, nil
}

func (s *workspaceServer) GetCapabilities(ctx context.Context, _ *sandboxv1.GetCapabilitiesRequest) (*sandboxv1.GetCapabilitiesResponse, error) {
	p, _ := principal.From(ctx)
	resp := &sandboxv1.GetCapabilitiesResponse{
		Node: s.info.Node, Level: s.info.Level, Driver: s.info.Driver, Includes: s.info.Includes,
		Network: s.info.NetworkKind, WorkspaceQuota: s.info.Quota, Environment: s.info.Mounts.Names(p.Tenant, p.User),
	}
	for _, o := range s.info.Mounts.Offers(p.Tenant, p.User) {
		resp.Mounts = append(resp.Mounts, &sandboxv1.WorkspaceMount{Name: o.Name, Paths: o.Paths, Writable: o.Writable, OnRequest: o.OnRequest})
	}
	return resp, nil
}
