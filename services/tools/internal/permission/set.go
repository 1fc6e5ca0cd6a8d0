package permission

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// Set has all profiles, by name.
type Set map[string]*Profile

// builtin are the profiles that need no configuration.
var builtin = map[string]Rules{
	"full":      {Allow: []string{"Bash", "Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS", "Skill", "Task", "TodoWrite", "AskUserQuestion", "check_operation", "cancel_operation", "create_agent", "edit_agent", "mcp__*", "ListMcpResources", "ReadMcpResource", "GetMcpPrompt"}},
	"read-only": {Allow: []string{"Read", "Glob", "Grep", "LS", "Skill", "Task", "TodoWrite", "AskUserQuestion", "check_operation"}},
	"ask-writes": {
		Allow: []string{"Read", "Glob", "Grep", "LS", "Skill", "Task", "TodoWrite", "AskUserQuestion", "check_operation", "cancel_operation"},
		Ask:   []string{"Bash", "Write", "Edit", "MultiEdit", "create_agent", "edit_agent", "mcp__*", "ListMcpResources", "ReadMcpResource", "GetMcpPrompt"},
	},
}

// Builtin reports whether a name is that of a built-in profile.
func Builtin(name string) bool {
	_, ok := builtin[name]
	return ok
}

// NewSet compiles the built-in profiles and those of the configuration, which
// may not take a built-in one's name. The error names every fault.
func NewSet(configured map[string]Rules) (Set, error) {
	set := Set{}
	var faults []error
	add := func(name string, r Rules) {
		p, err := Compile(name, r)
		if err != nil {
			faults = append(faults, err)
			return
		}
		set[name] = p
	}
	for name, r := range builtin {
		add(name, r)
	}
	for name, r := range configured {
		switch _, taken := builtin[name]; {
		case taken:
			faults = append(faults, fmt.Errorf("profile %s: the name belongs to a built-in profile; choose another", name))
		case !validName(name):
			faults = append(faults, fmt.Errorf("profile %q: a name is a lower-case letter, then lower-case letters, digits or -, at most 63 in all", name))
		default:
			add(name, r)
		}
	}
	if len(faults) > 0 {
		sort.Slice(faults, func(i, j int) bool { return faults[i].Error() < faults[j].Error() })
		return nil, errors.Join(faults...)
	}
	return set, nil
}

// CheckTools refuses rules about tools that do not exist: a rule with a typing error
// would deny nothing. Tools of MCP servers may be added later. The error names every
// fault.
func (s Set) CheckTools(tools []string) error {
	var faults []error
	for _, name := range s.Names() {
		p := s[name]
		for _, r := range slices.Concat(p.rules(), p.enabled, p.disabled) {
			if !strings.HasPrefix(r.tool, "mcp__") && !slices.ContainsFunc(tools, r.about) {
				faults = append(faults, fmt.Errorf("profile %s: rule %.100q: there is no such tool%s", name, r.text, config.Nearest(r.tool, tools)))
			}
		}
	}
	return errors.Join(faults...)
}

// Names lists the profiles, sorted.
func (s Set) Names() []string {
	names := make([]string, 0, len(s))
	for name := range s {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func validName(name string) bool {
	if name == "" || len(name) > 63 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
