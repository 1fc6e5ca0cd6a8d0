package permission

import (
	"fmt"
	"strings"
)

// Grant is a rule that a person allowed for longer than one call.
type Grant struct {
	rule    rule
	said    string
	binding string
}

// Bound returns the grant for a tool whose Request.Binding is the given one.
func (g Grant) Bound(binding string) Grant {
	g.binding = binding
	return g
}

// NewGrant reads the rule of a grant. It is about one tool: a rule for several tools is
// wider than any call. said is how decisions name the grant.
func NewGrant(tool, text, said string) (Grant, error) {
	r, err := parseRule(text)
	if err == nil && r.tool != tool {
		err = fmt.Errorf("it is not a rule for the tool %s alone", tool)
	}
	return Grant{rule: r, said: said}, err
}

// Tool returns the name of the tool in a rule.
func Tool(text string) string {
	name, _, _ := strings.Cut(text, "(")
	return name
}

// Covers reports whether the rule of a grant covers a call: with the grant the call is
// allowed, if the rules ask about it and deny nothing. For a command the rule covers the
// parts that are asked about.
func (p *Policy) Covers(g Grant, q Request) bool {
	return p.coverage(p.whole(q, &meter{})).covers(g)
}

// whole returns the subject of a request with its command parsed, for rules that the policy does not have.
func (p *Policy) whole(q Request, m *meter) *subject { return newSubject(q, true, p.Mode, m) }

// coverage tells which grants cover a call.
type coverage struct {
	p     *Policy
	s     *subject // in the mode default
	ruled bool     // the rules allow the call, or ask about it
}

// coverage judges a call once, for all grants.
func (p *Policy) coverage(s *subject) coverage {
	plain := *s
	plain.mode = Default
	return coverage{p, &plain, p.judge(&plain).Kind != Deny}
}

func (c coverage) covers(g Grant) bool {
	if !c.ruled || c.s.meter.spent() {
		return false
	}
	_, covered := c.p.granted(c.s, []Grant{g})
	return covered
}

// granted returns the grants that answer the question about a call.
func (p *Policy) granted(s *subject, grants []Grant) (string, bool) {
	if s.Tool != bash || s.parsed == nil {
		return grantedWhole(s, grants)
	}
	whole := strings.TrimSpace(s.Command)
	for i := range grants {
		if g := &grants[i]; g.rule.tool == bash {
			if g.rule.command == nil {
				return g.said + ": " + g.rule.text, true
			}
			if text, ok := g.rule.command.exact(); ok && text == whole {
				return g.said + ": " + g.rule.text, true
			}
		}
	}
	if s.parsed.complex != "" {
		return "", false
	}
	if s.free == nil {
		s.free = make([]bool, len(s.parsed.commands))
		for i := range s.parsed.commands {
			s.free[i] = p.free(&s.parsed.commands[i], s)
		}
	}
	var used *Grant
	for i := range s.parsed.commands {
		g := grantFor(&s.parsed.commands[i], grants, s.meter)
		if g == nil && !s.free[i] {
			return "", false
		}
		if used == nil {
			used = g
		}
	}
	if used == nil {
		return "", false
	}
	return used.said + ": " + used.rule.text, true
}

// grantedWhole is granted for a call that is not taken apart.
func grantedWhole(s *subject, grants []Grant) (string, bool) {
	var rules []rule
	for _, g := range grants {
		if g.rule.covers(s.Tool) && g.holds(s) {
			rules = append(rules, g.rule)
		}
	}
	text, ok := s.allowedWhole(rules)
	for _, g := range grants {
		if g.rule.text == text && g.holds(s) {
			text = g.said + ": " + text
			break
		}
	}
	return text, ok
}

// grantFor returns the grant that allows one command of a script; nil without one.
func grantFor(c *command, grants []Grant, m *meter) *Grant {
	for i := range grants {
		// Only Bash has rules on commands.
		if g := &grants[i]; g.rule.command != nil && c.allows(g.rule.command, m) {
			return g
		}
	}
	return nil
}

// free reports whether all rules allow one command of a script, without a question.
func (p *Policy) free(c *command, s *subject) bool {
	for l := range p.layers {
		for i := range l.ask {
			if r := &l.ask[i]; !s.meter.spend(1) || r.limits(s.Tool) && (r.command == nil || c.matches(r, s.meter) || c.mayMatch(r, s.meter)) {
				return false
			}
		}
		if l.filter && !l.allows {
			continue
		}
		if _, ok := c.allowedBy(l.allow, s.meter); !ok && !named(l.whole, s.Tool) {
			return false
		}
	}
	return true
}

// BindsPath reports whether the rule of a grant is about the path of a tool's calls.
func (g Grant) BindsPath(tool string) bool { return g.rule.paths != nil && g.rule.covers(tool) }
