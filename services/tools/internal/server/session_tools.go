package server

import (
	"context"
	"slices"
	"strings"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
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
