package agent

import (
	"fmt"
	"regexp"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// The runtimes, which drive turns.
const (
	Native        = "native"
	ClaudeCodeCLI = "claude-code"
	// Attached is what the runtimes of processes that attach begin with; their name follows.
	Attached    = "attached:"
	allRuntimes = Native + ", " + ClaudeCodeCLI + " and " + Attached + "{name}, for a process that attaches under this name"
)

var attachedName = regexp.MustCompile("^[a-z][a-z0-9-]{0,47}$")

// AttachedName returns the name under which the processes of a runtime attach; ok: the runtime is such a one.
func AttachedName(runtime string) (name string, ok bool) { return strings.CutPrefix(runtime, Attached) }

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
	name := s.RuntimeName()
	attached, isAttached := AttachedName(name)
	switch {
	case isAttached && !attachedName.MatchString(attached):
		return "runtime", fmt.Errorf("runtime %q: the name after %s does not have the form %s", name, Attached, attachedName)
	case name != Native && name != ClaudeCodeCLI && !isAttached:
		return "runtime", fmt.Errorf("runtime %q does not exist; the runtimes are %s", name, allRuntimes)
	case name != ClaudeCodeCLI && s.ClaudeCode != (ClaudeCode{}):
		return "claude_code", fmt.Errorf("claude_code has options of the runtime %s, but the agent's runtime is %s", ClaudeCodeCLI, name)
	default:
		return "", nil
	}
}
