package agent

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/variable"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

var environmentForm = regexp.MustCompile(`^environments/[a-z][a-z0-9-]{0,62}$`)

// Environment is what a session's sandbox has, in place of its agent's network, limits and mounts.
type Environment struct {
	Name        string            `json:"name,omitempty"`
	Version     int32             `json:"version,omitempty"`
	Description string            `json:"description,omitempty"`
	Network     []NetworkRule     `json:"network,omitempty"`
	Limits      Limits            `json:"limits,omitzero"`
	Mounts      []Mount           `json:"mounts,omitempty"`
	Variables   map[string]string `json:"variables,omitempty"`
	Setup       []string          `json:"setup,omitempty"` // commands that run once in a session's workspace
	// MetadataJSON is kept for those who made the environment.
	MetadataJSON string `json:"metadata_json,omitempty"`
}

// In returns the spec of a session in an environment.
func (s Spec) In(e Environment) Spec {
	s.Environment, s.Network, s.Limits, s.Mounts = e.Name, e.Network, e.Limits, e.Mounts
	s.Pinned = &Environment{Name: e.Name, Version: e.Version, Variables: e.Variables, Setup: e.Setup}
	return s
}

// EnvironmentVersion returns the version of the environment of a session's spec, or 0.
func (s Spec) EnvironmentVersion() int32 {
	if s.Pinned == nil {
		return 0
	}
	return s.Pinned.Version
}

// Faults returns the rules that the environment breaks.
func (e Environment) Faults() []Fault {
	var faults []Fault
	sandbox := Spec{Network: e.Network}
	for _, check := range []struct {
		field string
		err   error
	}{
		{"network", sandbox.checkNetwork()}, {"limits", e.Limits.check()}, {"mounts", checkMounts(e.Mounts)}, {"metadata_json", checkMetadata(e.MetadataJSON)},
	} {
		if check.err != nil {
			faults = append(faults, Fault{check.field, check.err.Error()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Variables)) {
		if err := variable.Check(name, e.Variables[name]); err != nil {
			faults = append(faults, Fault{"variables", fmt.Sprintf("%q: %v", name, err)})
		}
	}
	return faults
}

// EnvironmentFrom returns the environment that a client sent.
func EnvironmentFrom(p *sessionv1.EnvironmentSpec) Environment {
	s := FromProto(&sessionv1.AgentSpec{Network: p.GetNetwork(), Limits: p.GetLimits(), Mounts: p.GetMounts()})
	return Environment{Description: p.GetDescription(), Network: s.Network, Limits: s.Limits, Mounts: s.Mounts, Variables: p.GetVariables(), Setup: p.GetSetup(), MetadataJSON: p.GetMetadataJson()}
}

// ToProto returns the environment as EnvironmentFrom takes it.
func (e Environment) ToProto() *sessionv1.EnvironmentSpec {
	s := Spec{Network: e.Network, Limits: e.Limits, Mounts: e.Mounts}.ToProto()
	return &sessionv1.EnvironmentSpec{Description: e.Description, Network: s.Network, Limits: s.Limits, Mounts: s.Mounts, Variables: e.Variables, Setup: e.Setup, MetadataJson: e.MetadataJSON}
}

// Variables returns the environment of commands: the variables of the session's environment, and over them
// those of the acting user. Without variables it removes the earlier ones.
func (s Spec) Variables(user []store.Variable) *sandboxv1.WorkspaceEnvironment {
	e := &sandboxv1.WorkspaceEnvironment{Variables: map[string]string{}}
	if s.Pinned != nil {
		maps.Copy(e.Variables, s.Pinned.Variables)
	}
	for _, v := range user {
		e.Variables[v.Name] = v.Value
	}
	return e
}

// checkEnvironment checks only the name: each tenant has environments of its own.
func (s Spec) checkEnvironment() error {
	if s.Environment != "" && !environmentForm.MatchString(s.Environment) {
		return fmt.Errorf("environment: %q is not of the form environments/NAME", s.Environment)
	}
	return nil
}
