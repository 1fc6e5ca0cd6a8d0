package agent

import (
	"fmt"
	"slices"
	"strings"
)

// Doubts returns warnings about settings that are probably not meant. They are not faults,
// because a client may add tools of its own.
func (a Agent) Doubts() []string {
	doubts := UnknownCheckpoints(a.Spec.Checkpoints, a.Spec.Tools)
	if why := a.Spec.wantsTools(); why != "" && len(a.Spec.Tools) == 0 {
		doubts = append(doubts, "tools: there are none, though the agent has "+why+": name those that it may ask for")
	}
	return doubts
}

// UnknownCheckpoints returns a warning for each name that is not a tool.
func UnknownCheckpoints(names, tools []string) []string {
	var doubts []string
	for _, name := range names {
		if !strings.HasSuffix(name, "*") && !slices.Contains(tools, name) {
			doubts = append(doubts, fmt.Sprintf("checkpoints: %q is none of the tools (%s): a checkpoint is made only if a client has a tool of that name", name, strings.Join(tools, ", ")))
		}
	}
	return doubts
}

// wantsTools returns the name of a setting that only makes sense with tools, or
// "".
func (s Spec) wantsTools() string {
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
