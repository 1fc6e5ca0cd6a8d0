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

// environmentFile is the keys of an environment.
type environmentFile struct {
	Description string              `key:"description" help:"what the environment is for, in a sentence"`
	Network     []agent.NetworkRule `key:"network" help:"destinations that commands may reach; none: no network"`
	Limits      agent.Limits        `key:"limits" help:"limits of the workspace and the commands"`
	Mounts      []agent.Mount       `key:"mounts" help:"mounts of the sandbox's operator"`
	Variables   map[string]string   `key:"variables" help:"environment variables of commands"`
	Setup       []string            `key:"setup" help:"shell commands that run once in a session's workspace, before its first call"`
}

// EnvironmentFile reads a YAML file with the keys of one environment. Only the server knows whether the spec is valid.
func EnvironmentFile(name string) (*sessionv1.EnvironmentSpec, error) {
	var f environmentFile
	if err := config.Load(&f, config.Options{Name: "the environment", Args: []string{"--config=" + name}, Environ: []string{}}); err != nil {
		return nil, err
	}
	e := agent.Environment{Description: f.Description, Network: f.Network, Limits: f.Limits, Mounts: f.Mounts, Variables: f.Variables, Setup: f.Setup}
	return e.ToProto(), nil
}
