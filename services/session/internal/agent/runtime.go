package agent

import (
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// The runtimes, which drive turns.
const (
	Native        = "native"
	ClaudeCodeCLI = "claude-code"
	allRuntimes   = Native + " and " + ClaudeCodeCLI
)

// ClaudeCode has the options of the runtime `claude-code`.
type ClaudeCode struct {
	PresetPrompt bool `key:"preset-prompt" json:"preset_prompt,omitempty" help:"keeps the CLI's own system prompt and adds the agent's to it; otherwise the agent's takes its place"`
}

func (c ClaudeCode) proto() *sessionv1.ClaudeCodeOptions {
	if c == (ClaudeCode{}) {
		return nil
	}
	return &sessionv1.ClaudeCodeOptions{PresetPrompt: c.PresetPrompt}
}

// RuntimeName returns the runtime of the agent's turns.
func (s Extensions) RuntimeName() string {
	if s.Runtime == "" {
		return Native
	}
	return s.Runtime
}

func (s Extensions) checkRuntime() (field string, err error) {
	switch name := s.RuntimeName(); {
	case name != Native && name != ClaudeCodeCLI:
		return "runtime", fmt.Errorf("runtime %q does not exist; the runtimes are %s", name, allRuntimes)
	case name == Native && s.ClaudeCode != (ClaudeCode{}):
		return "claude_code", fmt.Errorf("claude_code has options of the runtime %s, but the agent's runtime is %s", ClaudeCodeCLI, Native)
	default:
		return "", nil
	}
}
