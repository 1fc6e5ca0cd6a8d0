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
		asked := asks(r.GetMounts())
		if _, err := s.info.Mounts.For(c.Tenant, c.User, asked); err != nil {
			return w, err
		}
		w.Mounts = &asked
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

// asks returns the requested mounts by name.
func asks(r *sandboxv1.WorkspaceMounts) []box.Ask {
	all := make([]box.Ask, 0, len(r.GetMounts()))
	for _, m := range r.GetMounts() {
		all = append(all, box.Ask{Name: m.GetName(), Path: m.GetPath(), Alias: m.GetAlias(), Mode: m.GetMode(), Optional: m.GetOptional()})
	}
	slices.SortFunc(all, func(a, b box.Ask) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// missing returns the names of the optional mounts that the user's commands do not get, and of those that they get
// without a request and whose source is missing.
func (s *Server) missing(c box.Call, r *sandboxv1.WorkspaceMounts) ([]string, error) {
	asked := slices.DeleteFunc(asks(r), func(a box.Ask) bool { return !a.Optional })
	names := s.info.Mounts.Skipped(c.Tenant, c.User)
	if len(asked) == 0 {
		return names, nil
	}
	all, err := s.info.Mounts.For(c.Tenant, c.User, asks(r))
	if err != nil {
		return nil, err
	}
	for _, a := range asked {
		if !slices.Contains(names, a.Name) && !slices.ContainsFunc(all, func(m box.Mount) bool { return m.Name == a.Name && !m.Cover }) {
			names = append(names, a.Name)
		}
	}
	return names, nil
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
