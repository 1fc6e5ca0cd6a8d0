package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// ListSessionTools implements CallService.
func (s *Calls) ListSessionTools(ctx context.Context, q *toolsv1.ListSessionToolsRequest) (*toolsv1.ListSessionToolsResponse, error) {
	ref, err := refOf(ctx, q.GetCall())
	if err != nil {
		return nil, err
	}
	scope, after := "ListSessionTools\x00"+ref.Tenant+"\x00"+ref.Session, ""
	if q.GetPageToken() != "" {
		if err := page.Decode(q.GetPageToken(), scope, &after); err != nil {
			return nil, outward(err, "")
		}
	}
	p, _ := principal.From(ctx)
	all, states := s.servers.List(ctx, mcp.Caller{User: p.User, Ref: ref}, q.GetServers(), q.GetAllowedTools())
	if !q.GetContents() {
		for _, state := range states {
			state.Resources, state.ResourceTemplates, state.Prompts = nil, nil, nil
		}
	}
	for _, name := range s.registry.Names() {
		if t, ok := s.registry.Get(name); ok && slices.Contains(q.GetAllowedTools(), name) {
			all = append(all, t)
		}
	}
	if all, err = s.shown(ctx, ref, q, all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *tool.Tool) int { return strings.Compare(a.Name, b.Name) })
	listed, more, _ := page.Fill(page.Size(q.GetPageSize(), maxPage, maxPage), func(last *toolsv1.Tool, n int) (some []*toolsv1.Tool, _ error) {
		if last != nil {
			after = toolID(last)
		}
		for _, t := range all {
			if t.Name > after && len(some) < n {
				some = append(some, toProto(t))
			}
		}
		return some, nil
	})
	resp := &toolsv1.ListSessionToolsResponse{Tools: listed}
	if q.GetPageToken() == "" {
		resp.Servers = states
	}
	if more {
		resp.NextPageToken = page.Encode(scope, toolID(listed[len(listed)-1]))
	}
	return resp, nil
}

// shown leaves out the tools that the rules of a session disable. Where there is no such profile, or a rule is faulty,
// the calls say so.
func (s *Calls) shown(ctx context.Context, ref store.Ref, q *toolsv1.ListSessionToolsRequest, all []*tool.Tool) ([]*tool.Tool, error) {
	if q.GetProfile() == "" {
		return all, nil
	}
	version, err := s.engine.Store.PermissionVersion(ctx, ref.Tenant)
	if err != nil {
		return nil, outward(err, ref.Session)
	}
	p, _ := principal.From(ctx)
	rules, err := s.engine.Policies.Policy(ctx, policy.Query{
		Tenant: ref.Tenant, User: p.User, Session: ref.Session, Version: version, Profile: q.GetProfile(), Filters: q.GetFilters(),
	})
	var faulty *policy.RuleError
	if errors.Is(err, policy.ErrProfileNotFound) || errors.As(err, &faulty) {
		return all, nil
	}
	if err != nil {
		return nil, outward(err, ref.Session)
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *tool.Tool) bool { return rules.Hides(t.Name) }), nil
}
