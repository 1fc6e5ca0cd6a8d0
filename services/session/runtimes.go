package session

import (
	"log/slog"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/claudecode"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy"
	"github.com/fairlead/fairlead/services/session/internal/turn/step"
)

// modelUsers are the parts beside the turns that clients of models speak to.
type modelUsers struct {
	proxy      *modelproxy.Proxy
	claudeCode *claudecode.Runtime // nil: not configured
}

// openRuntimes returns the runtimes besides the native one.
func (s *Service) openRuntimes(c Runtimes, log *slog.Logger) map[string]step.Runtime {
	if c.ClaudeCode.Program == "" {
		return nil
	}
	s.claudeCode = claudecode.New(c.ClaudeCode, s.sandbox, log)
	return map[string]step.Runtime{agent.ClaudeCodeCLI: s.claudeCode}
}

func (s *Service) closeRuntimes() {
	if s.claudeCode != nil {
		s.claudeCode.Close()
	}
}

// runtimes says which runtimes agents can have.
func (s *Service) runtimes(agents *agent.Set) []*sessionv1.RuntimeCapabilities {
	native, cli := &sessionv1.RuntimeCapabilities{Name: agent.Native}, &sessionv1.RuntimeCapabilities{Name: agent.ClaudeCodeCLI}
	for _, a := range agents.All() {
		if a.Spec.RuntimeName() == agent.Native {
			native.Agents = append(native.Agents, "agents/"+a.ID)
		} else {
			cli.Agents = append(cli.Agents, "agents/"+a.ID)
		}
	}
	if s.claudeCode == nil {
		cli.Unusable = "session.runtimes.claude-code.program is not set: the operator installs Claude Code and names its path there."
	} else if version, why := s.claudeCode.Status(); why != "" {
		cli.Version, cli.Unusable = version, why+". The operator checks session.runtimes.claude-code.program."
	} else {
		cli.Version = version
	}
	return []*sessionv1.RuntimeCapabilities{native, cli}
}
