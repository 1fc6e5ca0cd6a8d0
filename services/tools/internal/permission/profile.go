package permission

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Rules has a profile's rules, as written in the configuration.
type Rules struct {
	//
	// A rule on paths, such as Read(./secret/**), holds for a path as it is written
	// and where its symbolic links lead. It does not hold for hard links, which are
	// other names of the same file, nor for what a command of Bash opens.
	Allow         []string `key:"allow" json:"allow,omitempty" help:"rules that let a call run, such as Read or Bash(git *)"`
	Ask           []string `key:"ask" json:"ask,omitempty" help:"rules that make a person decide"`
	Deny          []string `key:"deny" json:"deny,omitempty" help:"rules that refuse a call; they beat those that allow or ask"`
	Interrupt     []string `key:"interrupt" json:"interrupt,omitempty" help:"rules that refuse a call and end the turn; they beat all others"`
	EnabledTools  []string `key:"enabled-tools" json:"enabled-tools,omitempty" help:"the tools that may be used, by name or as mcp__server__*; empty: all"`
	DisabledTools []string `key:"disabled-tools" json:"disabled-tools,omitempty" help:"tools that may not be used; they beat enabled-tools"`
	Directories   []string `key:"directories" json:"directories,omitempty" help:"directories of the workspace below which tools may name files; empty: the whole workspace; commands of Bash are not bound by it"`
}

// Profile is a compiled set of rules. It is safe for concurrent use.
type Profile struct {
	name                        string
	text                        Rules
	filter                      bool // the rules narrow those of a profile
	allows                      bool // there are rules that allow
	commands                    bool // a rule looks into commands
	interrupt, deny, ask, allow []rule
	whole                       []rule // those of allow that cover every call of their tools
	enabled, disabled           []rule
	directories                 []string // relative to the workspace
}

// RuleError is a fault of a rule.
type RuleError struct {
	// Field names the rule in its lists, as `deny[2]`.
	Field string
	// Text is the rule.
	Text string
	// Err is what is wrong with it.
	Err error
}

// Error names the rule and the fault.
func (f RuleError) Error() string {
	list, _, _ := strings.Cut(f.Field, "[")
	return fmt.Sprintf("%s rule %.100q: %s", list, f.Text, f.Err)
}

// Unwrap returns what is wrong.
func (f RuleError) Unwrap() error { return f.Err }

// Compile checks rules and returns their profile. The error names every fault.
func Compile(name string, r Rules) (*Profile, error) {
	p, faults := compile(Profile{name: name}, r)
	if len(faults) == 0 {
		return p, nil
	}
	all := make([]error, len(faults))
	for i, f := range faults {
		all[i] = fmt.Errorf("profile %s: %w", name, f)
	}
	return nil, errors.Join(all...)
}

// CompileFilter checks rules that narrow a profile.
func CompileFilter(r Rules) (*Profile, []RuleError) { return compile(Profile{filter: true}, r) }

func compile(p Profile, r Rules) (*Profile, []RuleError) {
	var faults []RuleError
	read := func(list string, texts []string, parse func(string) (rule, error)) (rules []rule) {
		for i, text := range texts {
			made, err := parse(text)
			if err != nil {
				faults = append(faults, RuleError{fmt.Sprintf("%s[%d]", list, i), text, err})
				continue
			}
			p.commands = p.commands || made.command != nil
			rules = append(rules, made)
		}
		return rules
	}
	p.interrupt, p.deny = read("interrupt", r.Interrupt, parseRule), read("deny", r.Deny, parseRule)
	p.ask, p.allow = read("ask", r.Ask, parseRule), read("allow", r.Allow, parseRule)
	p.enabled, p.disabled = read("enabled_tools", r.EnabledTools, parseTool), read("disabled_tools", r.DisabledTools, parseTool)
	for i, dir := range r.Directories {
		rel, ok := workspacePath(strings.TrimSpace(dir))
		if !ok || strings.TrimSpace(dir) == "" {
			faults = append(faults, RuleError{fmt.Sprintf("directories[%d]", i), dir, errors.New("it is not a directory of /workspace")})
			continue
		}
		p.directories = append(p.directories, rel)
	}
	p.text, p.allows = r, len(r.Allow) > 0
	for _, made := range p.allow {
		if made.whole() {
			p.whole = append(p.whole, made)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return &p, nil
}

// parseTool reads the name of a tool, perhaps with wildcards.
func parseTool(text string) (rule, error) {
	r, err := parseRule(text)
	if err == nil && strings.Contains(text, "(") {
		err = errors.New("the list takes names of tools without (…)")
	}
	return r, err
}

// Name returns the profile's name.
func (p *Profile) Name() string { return p.name }

// Rules returns the profile's rules as they were written.
func (p *Profile) Rules() Rules { return p.text }

// title names the profile in explanations.
func (p *Profile) title() string {
	if p.filter {
		return "the agent or the session"
	}
	return "the profile " + p.name
}

// rules are all rules of a profile that may have a specifier.
func (p *Profile) rules() []rule { return slices.Concat(p.interrupt, p.deny, p.ask, p.allow) }

// asksWhereItLeads reports whether the decision on a tool with a path depends on the
// target of the path.
func (p *Profile) asksWhereItLeads(tool string) bool {
	if len(p.directories) > 0 {
		return true
	}
	for _, rules := range [][]rule{p.interrupt, p.deny, p.ask, p.allow} {
		for _, r := range rules {
			if r.paths != nil && r.limits(tool) {
				return true
			}
		}
	}
	return false
}

// named reports whether one of the rules is about a tool.
func named(rules []rule, tool string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.covers(tool) })
}

// below reports whether a path is one of the directories or in it.
func below(directories []string, rel string) bool {
	for _, dir := range directories {
		if dir == "." || rel == dir || strings.HasPrefix(rel, dir+"/") {
			return true
		}
	}
	return false
}

// listed lists directories for the model.
func listed(directories []string) string {
	full := make([]string, len(directories))
	for i, dir := range directories {
		full[i] = path.Join(workspace, dir)
	}
	return strings.Join(full, ", ")
}
