package agent

import (
	"fmt"
	"slices"
	"strings"
)

// Warnings returns warnings about settings that are probably not meant. They are not faults,
// because a client may add tools of its own.
func (a Agent) Warnings() []string {
	warnings := UnknownCheckpoints(a.Spec.Checkpoints, a.Spec.Tools)
	if why := wantsTools(a.Spec); why != "" && len(a.Spec.Tools) == 0 {
		warnings = append(warnings, "tools: the list is empty, but the agent has "+why+"; list the tools that it may use")
	}
	return warnings
}

// UnknownCheckpoints returns a warning for each name that is not a tool.
func UnknownCheckpoints(names, tools []string) []string {
	var warnings []string
	for _, name := range names {
		if !strings.HasSuffix(name, "*") && !slices.Contains(tools, name) {
			warnings = append(warnings, fmt.Sprintf("checkpoints: %q is not one of the agent's tools (%s); it applies only to a client's tool of that name", name, strings.Join(tools, ", ")))
		}
	}
	return warnings
}

// wantsTools returns the name of a setting that only makes sense with tools, or
// "".
func wantsTools(s Spec) string {
	switch {
	case s.limitsProto() != nil:
		return "limits"
	case len(s.Network) > 0:
		return "a network"
	case len(s.Mounts) > 0:
		return "mounts"
	case len(s.Repositories) > 0:
		return "repositories"
	case s.Profile == "full", s.Profile == "ask-writes":
		return "the profile " + s.Profile
	}
	return ""
}
