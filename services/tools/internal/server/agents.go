package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
)

// Known has the names that agents may use.
type Known struct{ Tools, Profiles []string }

// CheckAgents implements CallService.
func (s *Calls) CheckAgents(_ context.Context, q *toolsv1.CheckAgentsRequest) (*toolsv1.CheckAgentsResponse, error) {
	resp := &toolsv1.CheckAgentsResponse{}
	for _, a := range q.GetAgents() {
		check := func(field, what, name string, known []string) {
			if !slices.Contains(known, name) {
				resp.Faults = append(resp.Faults, &toolsv1.AgentFault{
					Agent: a.GetAgent(), Field: field, Message: fmt.Sprintf("agent %q: %s: there is no %s %q%s", a.GetAgent(), field, what, name, config.Nearest(name, known)),
				})
			}
		}
		check("profile", "permission profile", a.GetProfile(), s.known.Profiles)
		for _, name := range a.GetTools() {
			check("tools", "tool", name, s.known.Tools)
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
