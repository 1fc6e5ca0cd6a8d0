package permission

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxRuleBytes bounds a rule.
const maxRuleBytes = 4096

// rule is one compiled rule. At most one of command, paths and named is set; with
// none it covers every call of its tools.
type rule struct {
	text    string
	tool    string
	glob    *pattern // for a tool name with wildcards
	command *pattern
	paths   *pathPattern
	named   *pattern // what a call of namingTools names
}

// namingTools are the tools whose calls name a subagent or a skill.
var namingTools = []string{"Task", "Skill"}

var toolNamePattern = regexp.MustCompile(`^[A-Za-z*][A-Za-z0-9_*-]*$`)

// parseRule reads `Tool` or `Tool(specifier)`.
func parseRule(text string) (rule, error) {
	r := rule{text: text}
	if len(text) > maxRuleBytes {
		return r, fmt.Errorf("longer than %d bytes", maxRuleBytes)
	}
	if !utf8.ValidString(text) {
		return r, errors.New("not valid UTF-8")
	}
	name, spec, specified, err := splitRule(text)
	if err != nil {
		return r, err
	}
	r.tool = name
	if strings.Contains(name, "*") {
		if specified {
			return r, errors.New("a tool name with * takes no (…)")
		}
		glob := newPattern(name)
		r.glob = &glob
		return r, nil
	}
	switch {
	case !specified:
	case pathTools[name] != nil:
		r.paths, err = newPathPattern(spec)
	case spec == "*":
	case name == "Bash":
		r.command, err = commandPattern(spec)
	case slices.Contains(namingTools, name):
		p := newPattern(spec)
		r.named = &p
	default:
		err = fmt.Errorf("%s takes no (…): only Bash, the file tools, Task and Skill do", name)
	}
	return r, err
}

func splitRule(text string) (name, spec string, specified bool, err error) {
	name, rest, specified := strings.Cut(text, "(")
	if specified {
		if !strings.HasSuffix(rest, ")") {
			return "", "", false, errors.New("the closing ) is missing")
		}
		spec = strings.TrimSpace(strings.TrimSuffix(rest, ")"))
		if spec == "" {
			return "", "", false, errors.New("there is nothing between ( and ); leave them out to cover every call")
		}
		if strings.ContainsRune(spec, 0) {
			return "", "", false, errors.New("it contains a NUL character")
		}
	}
	if !toolNamePattern.MatchString(name) {
		return "", "", false, errors.New("it does not begin with a tool's name")
	}
	return name, spec, specified, nil
}

// commandPattern compiles the pattern in Bash(…). `*` matches anything; after a
// space at the end, or as `:*`, it also matches nothing, and the word before it
// ends there. `\*` is an asterisk.
func commandPattern(spec string) (*pattern, error) {
	if head, ok := strings.CutSuffix(spec, ":*"); ok {
		spec = head + " *"
	}
	head, open := strings.CutSuffix(spec, " *")
	if open && strings.TrimSpace(head) == "" {
		return nil, errors.New("there is no command before the *")
	}
	if open {
		spec = strings.TrimRight(head, " ")
	}
	p := newPattern(spec)
	p.open = open
	p.begin()
	p.spread()
	return &p, nil
}

// pathTools lists, for each tool that takes a path, the tools whose rules with a
// path cover it: a rule on reading covers every tool that reads, a rule on
// editing every tool that writes.
var pathTools = map[string][]string{
	"Read":      {"Read"},
	"Glob":      {"Glob", "Read"},
	"Grep":      {"Grep", "Read"},
	"LS":        {"LS", "Read"},
	"Write":     {"Write", "Edit"},
	"Edit":      {"Edit"},
	"MultiEdit": {"MultiEdit", "Edit"},
}

// showTools change a file and show lines of it. A rule with a path that denies reading,
// or asks for it, covers them, too; a rule that allows reading does not.
var showTools = []string{"Edit", "MultiEdit"}

// about reports whether the rule names a tool, with or without a specifier.
func (r *rule) about(tool string) bool {
	return r.tool == tool || r.glob != nil && r.glob.match(tool)
}

// whole reports whether the rule covers every call of its tools.
func (r *rule) whole() bool { return r.command == nil && r.paths == nil && r.named == nil }

// limits reports whether the rule, as one that denies or asks, is about a tool.
func (r *rule) limits(tool string) bool {
	return r.covers(tool) || r.showsTo(tool)
}

// showsTo reports whether the rule limits a tool only because the tool shows lines.
func (r *rule) showsTo(tool string) bool {
	return r.paths != nil && r.tool == "Read" && slices.Contains(showTools, tool)
}

// covers reports whether the rule is about a tool, whatever the call's
// arguments.
func (r *rule) covers(tool string) bool {
	switch {
	case r.glob != nil:
		return r.glob.match(tool)
	case r.paths != nil:
		for _, name := range pathTools[tool] {
			if name == r.tool {
				return true
			}
		}
		return false
	case r.tool == tool:
		return true
	default:
		// `mcp__github` covers every tool of the server `github`.
		return strings.HasPrefix(r.tool, "mcp__") && strings.Count(r.tool, "__") == 1 && strings.HasPrefix(tool, r.tool+"__")
	}
}
