package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
)

// Known has the names that agents may use, and those of the operator's MCP servers.
type Known struct{ Tools, Servers []string }

// CheckAgents implements CallService.
func (s *Calls) CheckAgents(ctx context.Context, q *toolsv1.CheckAgentsRequest) (*toolsv1.CheckAgentsResponse, error) {
	resp := &toolsv1.CheckAgentsResponse{}
	profiles, err := s.engine.Policies.Names(ctx, principal.Tenant(ctx))
	if err != nil {
		return nil, outward(err, "")
	}
	for _, a := range q.GetAgents() {
		check := func(field, what, name string, known []string) {
			if !slices.Contains(known, name) {
				resp.Faults = append(resp.Faults, &toolsv1.AgentFault{
					Agent: a.GetAgent(), Field: field, Message: fmt.Sprintf("agent %q: %s: there is no %s %q%s", a.GetAgent(), field, what, name, config.Nearest(name, known)),
				})
			}
		}
		if a.GetProfile() != "" {
			check("profile", "permission profile", a.GetProfile(), profiles)
		}
		for _, name := range a.GetTools() {
			if server, ok := serverOf(name); ok {
				check("tools", "MCP server of the operator", server, s.known.Servers)
				continue
			}
			check("tools", "tool", name, s.known.Tools)
		}
		for _, name := range a.GetMcpServers() {
			if slices.Contains(s.known.Servers, name) {
				resp.Faults = append(resp.Faults, &toolsv1.AgentFault{
					Agent: a.GetAgent(), Field: "mcp_servers", Message: fmt.Sprintf("agent %q: mcp_servers: the operator has an MCP server %q; choose another name", a.GetAgent(), name),
				})
			}
		}
		faults, ok := errors.AsType[*policy.RuleError](policy.Check("permissions", a.GetPermissions()))
		if !ok {
			continue
		}
		for field, fault := range faults.Fields {
			resp.Faults = append(resp.Faults, &toolsv1.AgentFault{
				Agent: a.GetAgent(), Field: field, Message: fmt.Sprintf("agent %q: %s: %s", a.GetAgent(), field, fault),
			})
		}
	}
	return resp, nil
}

// serverOf returns the server that a name of `mcp__{server}__{tool}` or a prefix such as `mcp__{server}__*` names.
// Which tools a server has is not known until it is reached.
func serverOf(name string) (server string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", false
	}
	server, _, ok = strings.Cut(rest, "__")
	return server, ok
}
