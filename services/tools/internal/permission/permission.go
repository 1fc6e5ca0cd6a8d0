// Package permission decides whether a call may run.
//
// A profile is a set of rules that allow, ask, deny or interrupt, in the syntax of Claude Code; their order
// means nothing. Interrupt beats deny, deny beats ask, ask beats allow, and a call that no rule allows is
// denied. Interrupt denies a call and ends its turn.
//
// Filters are further sets of rules, which only narrow: the strictest decision of the profile and the filters
// holds. A filter without rules that allow says nothing about a call that it does not restrict.
//
// The mode changes the decision: it answers some questions with yes, or denies all changes. A grant, which a
// person gave with an earlier approval, answers a question with yes. Neither makes a denied call run.
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
// program it runs, counts as a match; an allow rule that cannot be checked does not. An interrupt rule that
// cannot be checked denies the call, and the turn goes on. A word that is not literal may be any word of a rule
// that restricts, and options before a subcommand do not hide it.
//
// The work of a decision is linear in the lengths of the call and of the rules, and bounded: a rule that the
// bound leaves unchecked cannot be checked.
package permission

import "fmt"

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
	// Interrupt says that the denial ends the turn.
	Interrupt bool
	// Planning says that the mode plan denies the call.
	Planning bool

	reading bool // a rule on reading asks about a tool that also writes
	unruled bool // no rule restricts the call, and none allows it
}

// strictness orders decisions, the strictest first.
func (d Decision) strictness() int {
	switch {
	case d.Interrupt:
		return 0
	case d.Kind == Deny:
		return 1
	case d.Kind == Ask && d.reading: // no mode for edits answers it
		return 2
	case d.Kind == Ask:
		return 3
	default:
		return 4
	}
}

// Request is the call to decide on.
type Request struct {
	// Tool is the tool's name.
	Tool string
	// ReadOnly says that the tool changes nothing.
	ReadOnly bool
	// Command is the command of Bash.
	Command string
	// Name is the subagent of Task or the skill of Skill.
	Name string
	// Path is the file or directory of a tool that has one, as the model wrote
	// it, after its escapes are decoded; empty means the workspace.
	Path string
	// Leads is the target of the path, without symbolic links; empty when no
	// rule needs it.
	Leads string
	// Doubt is why Leads is unknown; empty when it is known.
	Doubt string
	// Binding is what a grant on the tool is bound to, as Bind returns it; empty for a tool that is part of the service.
	Binding string
}

// Policy is all that decides on the calls of one session: a profile, the filters of its
// agent and of itself, the mode, and the grants. It is safe for concurrent use.
type Policy struct {
	Profile *Profile
	Filters []*Profile
	Mode    Mode
	// Grants are those of the acting user for the profile.
	Grants []Grant
}

// layers returns the profile and the filters.
func (p *Policy) layers(yield func(*Profile) bool) {
	if !yield(p.Profile) {
		return
	}
	for _, f := range p.Filters {
		if !yield(f) {
			return
		}
	}
}

// Decide decides whether a call may run.
func (p *Policy) Decide(q Request) Decision { return p.decide(p.subject(q, &meter{})) }

func (p *Policy) decide(s *subject) Decision {
	d := p.Mode.change(p.judge(s), s)
	if d.Kind != Ask {
		return d
	}
	if text, ok := p.granted(s, p.Grants); ok {
		return Decision{Kind: Allow, Rule: "allowed by " + text}
	}
	d.Rule += outdated(s, p.Grants)
	return d
}

// judge returns the strictest decision of the profile and the filters.
func (p *Policy) judge(s *subject) Decision {
	d := p.Profile.judge(s)
	for _, f := range p.Filters {
		if other := f.judge(s); other.strictness() < d.strictness() {
			d = other
		}
	}
	return d
}

// AsksWhereItLeads reports whether a decision on a tool needs Request.Leads.
func (p *Policy) AsksWhereItLeads(tool string) bool {
	if pathTools[tool] == nil {
		return false
	}
	for l := range p.layers {
		if l.asksWhereItLeads(tool) {
			return true
		}
	}
	for _, g := range p.Grants {
		if g.BindsPath(tool) {
			return true
		}
	}
	return p.Mode == AcceptEdits && edits(tool)
}

// Hides reports whether a tool is disabled, or each of its calls denied, whatever its arguments and the mode.
func (p *Policy) Hides(tool string) bool {
	for l := range p.layers {
		if named(l.disabled, tool) || len(l.enabled) > 0 && !named(l.enabled, tool) {
			return true
		}
		for _, rules := range [][]rule{l.interrupt, l.deny} {
			for i := range rules {
				if r := &rules[i]; r.whole() && r.covers(tool) {
					return true
				}
			}
		}
	}
	return false
}

// Withheld returns globs of the paths that a searching tool must leave out of its
// result: those that a rule denies, and those that need an approval that the request
// itself does not need.
func (p *Policy) Withheld(q Request) []string {
	s := p.subject(q, &meter{})
	var globs []string
	for l := range p.layers {
		for _, rules := range [][]rule{l.interrupt, l.deny} {
			for _, r := range rules {
				if r.paths != nil && r.covers(q.Tool) {
					globs = append(globs, r.paths.globs...)
				}
			}
		}
		for i := range l.ask {
			r := &l.ask[i]
			if r.paths != nil && r.covers(q.Tool) && !s.restricts(r) && p.Mode != Bypass {
				globs = append(globs, r.paths.globs...)
			}
		}
	}
	return globs
}

// subject prepares a request for the rules of all layers.
func (p *Policy) subject(q Request, m *meter) *subject {
	looks := q.Tool == bash && p.Mode == Plan
	for l := range p.layers {
		looks = looks || l.commands
	}
	for _, g := range p.Grants {
		looks = looks || g.rule.command != nil
	}
	return newSubject(q, looks, p.Mode, m)
}

// Of returns a policy of one profile.
func Of(p *Profile) *Policy { return &Policy{Profile: p} }

// said names the place of a rule that is not one of the profile.
func (p *Profile) said() string {
	if p.filter {
		return ", a rule of the agent or the session"
	}
	return ""
}

// judge decides by the rules of one profile or filter.
func (p *Profile) judge(s *subject) Decision {
	doubted := ""
	for i := range p.interrupt {
		r := &p.interrupt[i]
		if !s.restricts(r) {
			continue
		}
		if s.sure(r) {
			return Decision{Kind: Deny, Rule: "interrupt " + r.text + s.reason(r) + p.said(), Interrupt: true}
		}
		doubted = "interrupt " + r.text + s.reason(r) + p.said()
	}
	if doubted != "" {
		return Decision{Kind: Deny, Rule: doubted}
	}
	if why := p.unusable(s); why != "" {
		return Decision{Kind: Deny, Rule: why}
	}
	for i := range p.deny {
		if r := &p.deny[i]; s.restricts(r) {
			return Decision{Kind: Deny, Rule: "deny " + r.text + s.reason(r) + p.said()}
		}
	}
	if d, ok := p.question(s); ok {
		return d
	}
	if rules, ok := s.allowed(p.allow); ok {
		return Decision{Kind: Allow, Rule: "allow " + rules}
	}
	switch {
	case p.filter && !p.allows:
		return Decision{Kind: Allow, Rule: "no rule of the agent or the session restricts it"}
	case s.plans():
		return Decision{Kind: Allow, Rule: "the mode plan"}
	}
	return Decision{Kind: Deny, Rule: fmt.Sprintf("no rule of %s allows %s", p.title(), s.missing(p.allow)), unruled: true}
}

// question returns the question of the rules that ask. One about reading comes first.
func (p *Profile) question(s *subject) (d Decision, ok bool) {
	for i := range p.ask {
		r := &p.ask[i]
		if !s.restricts(r) {
			continue
		}
		reading := !r.covers(s.Tool)
		if !ok || reading {
			d, ok = Decision{Kind: Ask, Rule: "ask " + r.text + s.reason(r) + p.said(), reading: reading}, true
		}
		if reading {
			break
		}
	}
	return d, ok
}

// unusable says why a profile does not have the tool of a call, or its file.
func (p *Profile) unusable(s *subject) string {
	for i := range p.disabled {
		if r := &p.disabled[i]; r.covers(s.Tool) {
			return "disabled tool " + r.text + p.said()
		}
	}
	if len(p.enabled) > 0 && !named(p.enabled, s.Tool) {
		return fmt.Sprintf("%s is not among the enabled tools of %s", s.Tool, p.title())
	}
	if len(p.directories) == 0 || pathTools[s.Tool] == nil {
		return ""
	}
	if !s.inside {
		return s.doubt
	}
	for _, rel := range []string{s.path, s.leads} {
		if !below(p.directories, rel) {
			return fmt.Sprintf("%s on %q: it is not below a directory of %s; these are %s", s.Tool, clip(rel), p.title(), listed(p.directories))
		}
	}
	return ""
}
