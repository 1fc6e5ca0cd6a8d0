package session

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// AgentFile reads a YAML file with the keys of one agent of session.agents. Only the server knows
// whether the spec is valid.
func AgentFile(name string) (*sessionv1.AgentSpec, error) {
	var spec agent.Spec
	if err := config.Load(&spec, config.Options{Name: "the agent", Args: []string{"--config=" + name}, Environ: []string{}}); err != nil {
		return nil, err
	}
	return spec.ToProto(), nil
}
