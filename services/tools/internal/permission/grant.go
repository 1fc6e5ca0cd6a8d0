package permission

import (
	"fmt"
	"strings"
)

// Grant is a rule that a person allowed for longer than one call.
type Grant struct {
	rule rule
	said string
}

// NewGrant reads the rule of a grant. It is about one tool: a rule for several tools is
// wider than any call. said is how decisions name the grant.
func NewGrant(tool, text, said string) (Grant, error) {
	r, err := parseRule(text)
	if err == nil && r.tool != tool {
		err = fmt.Errorf("it is not a rule for the tool %s alone", tool)
	}
	return Grant{r, said}, err
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
	with := *p
	with.Mode, with.Grants = Default, []Grant{g}
	_, covered := with.granted(with.subject(q))
	return covered && with.Decide(q).Kind == Allow
}

// granted returns the grants that answer the question about a call.
func (p *Policy) granted(s *subject) (string, bool) {
	if s.Tool != bash || s.parsed == nil {
		return p.grantedWhole(s)
	}
	whole := strings.TrimSpace(s.Command)
	for i := range p.Grants {
		if g := &p.Grants[i]; g.rule.tool == bash {
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
	var used *Grant
	for i := range s.parsed.commands {
		c := &s.parsed.commands[i]
		g := p.grantFor(c)
		if g == nil && !p.free(c, s) {
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
func (p *Policy) grantedWhole(s *subject) (string, bool) {
	var rules []rule
	for _, g := range p.Grants {
		if g.rule.covers(s.Tool) {
			rules = append(rules, g.rule)
		}
	}
	text, ok := s.allowedWhole(rules)
	for _, g := range p.Grants {
		if g.rule.text == text {
			text = g.said + ": " + text
			break
		}
	}
	return text, ok
}

// grantFor returns the grant that allows one command of a script; nil without one.
func (p *Policy) grantFor(c *command) *Grant {
	for i := range p.Grants {
		// Only Bash has rules on commands.
		if g := &p.Grants[i]; g.rule.command != nil && c.allows(g.rule.command) {
			return g
		}
	}
	return nil
}

// free reports whether all rules allow one command of a script, without a question.
func (p *Policy) free(c *command, s *subject) bool {
	for l := range p.layers {
		for i := range l.ask {
			if r := &l.ask[i]; (r.command == nil || c.matches(r)) && r.limits(s.Tool) {
				return false
			}
		}
		if l.filter && !l.allows {
			continue
		}
		if _, ok := c.allowedBy(l.allow); !ok && !named(l.whole, s.Tool) {
			return false
		}
	}
	return true
}

// BindsPath reports whether the rule of a grant is about the path of a tool's calls.
func (g Grant) BindsPath(tool string) bool { return g.rule.paths != nil && g.rule.covers(tool) }
