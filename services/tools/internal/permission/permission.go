// Package permission decides whether a call may run.
//
// A profile is a set of rules that allow, ask or deny, in the syntax of Claude Code; their order means
// nothing. Deny beats ask, ask beats allow, and a call that no rule allows is denied.
//
// The package decides by the text of a call, not by its effects. A rule on a command looks at the command's
// words. A rule on a path looks at the path as written and at its target without symbolic links: one of the
// two is enough to deny or to ask, and both must be allowed.
//
// A rule that denies reading a path, or asks for it, covers Edit and MultiEdit of that path as well, because
// both show lines of the file.
//
// A rule on paths does not cover commands: a profile that keeps files from being read must not allow every
// command. Nor does it cover a hard link, which is another name of the same file. A rule on a program covers
// everything that the program can be told to run: `Bash(git *)` allows `git -c core.pager=…` and the hooks of
// a repository. The sandbox, not this package, bounds what a permitted call can reach.
//
// A deny or ask rule that cannot be checked, because a command cannot be parsed or computes the name of the
// program it runs, counts as a match; an allow rule that cannot be checked does not.
package permission

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// Kind is the kind of a decision.
type Kind int

// Kinds of decisions.
const (
	Deny Kind = iota
	Ask
	Allow
)

// String returns the kind as it is shown in rules and traces.
func (k Kind) String() string {
	switch k {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	default:
		return "deny"
	}
}

// Decision is a decision with its reason.
type Decision struct {
	// Kind is Deny unless a rule said otherwise.
	Kind Kind
	// Rule is the rule that decided, or why none did.
	Rule string
}

// Request is the call to decide on.
type Request struct {
	// Tool is the tool's name.
	Tool string
	// Command is the command of Bash.
	Command string
	// Path is the file or directory of a tool that has one, as the model wrote
	// it, after its escapes are decoded; empty means the workspace.
	Path string
	// Leads is the target of the path, without symbolic links; empty when no
	// rule needs it.
	Leads string
	// Doubt is why Leads is unknown; empty when it is known.
	Doubt string
}

// Rules has a profile's rules, as written in the configuration.
type Rules struct {
	//
	// A rule on paths, such as Read(./secret/**), holds for a path as it is written
	// and where its symbolic links lead. It does not hold for hard links, which are
	// other names of the same file, nor for what a command of Bash opens.
	Allow []string `key:"allow" json:"allow" help:"rules that let a call run, such as Read or Bash(git *)"`
	Ask   []string `key:"ask" json:"ask" help:"rules that make a person decide"`
	Deny  []string `key:"deny" json:"deny" help:"rules that refuse a call; they beat all others"`
}

// Profile is a compiled set of rules. It is safe for concurrent use.
type Profile struct {
	name             string
	allow, ask, deny []rule
}

// Compile checks rules and returns their profile. The error names every fault.
func Compile(name string, r Rules) (*Profile, error) {
	p := &Profile{name: name}
	var faults []error
	for _, list := range []struct {
		word  string
		texts []string
		into  *[]rule
	}{{"allow", r.Allow, &p.allow}, {"ask", r.Ask, &p.ask}, {"deny", r.Deny, &p.deny}} {
		for _, text := range list.texts {
			compiled, err := parseRule(text)
			if err != nil {
				faults = append(faults, fmt.Errorf("profile %s: %s rule %.100q: %w", name, list.word, text, err))
				continue
			}
			*list.into = append(*list.into, compiled)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return p, nil
}

// Name returns the profile's name.
func (p *Profile) Name() string { return p.name }

func (p *Profile) looksIntoCommands() bool {
	for _, rules := range [][]rule{p.allow, p.ask, p.deny} {
		for _, r := range rules {
			if r.command != nil {
				return true
			}
		}
	}
	return false
}

// Decide decides whether a call may run.
func (p *Profile) Decide(q Request) Decision {
	s := newSubject(q, p)
	for _, r := range p.deny {
		if s.restricts(r) {
			return Decision{Deny, "deny " + r.text + s.reason(r)}
		}
	}
	for _, r := range p.ask {
		if s.restricts(r) {
			return Decision{Ask, "ask " + r.text + s.reason(r)}
		}
	}
	if rules, ok := s.allowed(p.allow); ok {
		return Decision{Allow, "allow " + rules}
	}
	return Decision{Deny, fmt.Sprintf("no rule of the profile %s allows %s", p.name, s.missing(p.allow))}
}

// AsksWhereItLeads reports whether a rule on paths covers a tool, so that a decision
// needs Request.Leads.
func (p *Profile) AsksWhereItLeads(tool string) bool {
	for _, rules := range [][]rule{p.allow, p.ask, p.deny} {
		for _, r := range rules {
			if r.paths != nil && r.limits(tool) {
				return true
			}
		}
	}
	return false
}

// Withheld returns globs of the paths that a searching tool must leave out of its
// result: those that a rule denies, and those that need an approval that the request
// itself does not need.
func (p *Profile) Withheld(q Request) []string {
	s := newSubject(q, p)
	var globs []string
	for _, r := range p.deny {
		if r.paths != nil && r.covers(q.Tool) {
			globs = append(globs, r.paths.globs...)
		}
	}
	for _, r := range p.ask {
		if r.paths != nil && r.covers(q.Tool) && !s.restricts(r) {
			globs = append(globs, r.paths.globs...)
		}
	}
	return globs
}

// Set has all profiles, by name.
type Set map[string]*Profile

// builtin are the profiles that need no configuration.
var builtin = map[string]Rules{
	"full":      {Allow: []string{"Bash", "Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS", "TodoWrite", "check_operation", "cancel_operation"}},
	"read-only": {Allow: []string{"Read", "Glob", "Grep", "LS", "TodoWrite", "check_operation"}},
	"ask-writes": {
		Allow: []string{"Read", "Glob", "Grep", "LS", "TodoWrite", "check_operation", "cancel_operation"},
		Ask:   []string{"Bash", "Write", "Edit", "MultiEdit"},
	},
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
		for _, r := range slices.Concat(p.allow, p.ask, p.deny) {
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
