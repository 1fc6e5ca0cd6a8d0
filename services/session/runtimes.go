package session

import (
	"context"
	"log/slog"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/attached"
	"github.com/fairlead/fairlead/services/session/internal/claudecode"
	"github.com/fairlead/fairlead/services/session/internal/flag"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/turn/step"
)

// modelUsers are the parts beside the turns that clients of models speak to, and the flags that choose among them.
type modelUsers struct {
	flags      *flag.Flags // nil: none are configured
	proxy      *modelproxy.Proxy
	claudeCode *claudecode.Runtime // nil: not configured
	attached   *attached.Hub
}

// names returns the runtimes that turns can have.
func (r Runtimes) names() []string {
	if r.ClaudeCode.Program == "" {
		return []string{agent.Native}
	}
	return []string{agent.Native, agent.ClaudeCodeCLI}
}

// openRuntimes returns the runtimes besides the native one.
func (s *Service) openRuntimes(c Runtimes, replica string, log *slog.Logger) map[string]step.Runtime {
	s.attached = attached.New(c.Attached, s.store, replica, log)
	all := map[string]step.Runtime{agent.Attached: s.attached}
	if c.ClaudeCode.Program != "" {
		s.claudeCode = claudecode.New(c.ClaudeCode, s.sandbox, log)
		all[agent.ClaudeCodeCLI] = s.claudeCode
	}
	return all
}

func (s *Service) closeRuntimes() {
	if s.claudeCode != nil {
		s.claudeCode.Close()
	}
}

// runtimes says which runtimes agents of the caller's tenant can have.
func (s *Service) runtimes(ctx context.Context, agents *agent.Set) []*sessionv1.RuntimeCapabilities {
	native, cli := &sessionv1.RuntimeCapabilities{Name: agent.Native}, &sessionv1.RuntimeCapabilities{Name: agent.ClaudeCodeCLI}
	all := append([]*sessionv1.RuntimeCapabilities{native, cli}, s.attachedRuntimes(ctx)...)
	for _, a := range agents.All() {
		name := a.Spec.RuntimeName()
		i := slices.IndexFunc(all, func(r *sessionv1.RuntimeCapabilities) bool { return r.Name == name })
		if i < 0 {
			i, all = len(all), append(all, &sessionv1.RuntimeCapabilities{Name: name})
			all[i].Unusable = "No process is attached under this name: the operator starts one."
		}
		all[i].Agents = append(all[i].Agents, "agents/"+a.ID)
	}
	if s.claudeCode == nil {
		cli.Unusable = "session.runtimes.claude-code.program is not set: the operator installs Claude Code and names its path there."
	} else if version, why := s.claudeCode.Status(); why != "" {
		cli.Version, cli.Unusable = version, why+". The operator checks session.runtimes.claude-code.program."
	} else {
		cli.Version = version
	}
	return all
}

// attachedRuntimes lists what is attached for the caller's tenant, on all replicas.
func (s *Service) attachedRuntimes(ctx context.Context) []*sessionv1.RuntimeCapabilities {
	var all []*sessionv1.RuntimeCapabilities
	for _, r := range s.attached.Runtimes(ctx, principal.Tenant(ctx)) {
		all = append(all, &sessionv1.RuntimeCapabilities{
			Name: agent.Attached + r.Name, Processes: int32(r.Processes), Places: int32(r.Places), Turns: int32(r.Turns),
		})
	}
	return all
}
