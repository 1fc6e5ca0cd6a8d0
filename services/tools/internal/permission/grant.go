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
	var used string
	rules := make([]rule, 0, len(p.Grants))
	for _, g := range p.Grants {
		if g.rule.covers(s.Tool) {
			rules = append(rules, g.rule)
		}
	}
	if len(rules) == 0 {
		return "", false
	}
	if text, ok := s.allowedWhole(rules); ok {
		return p.saying(text), true
	}
	if s.parsed == nil || s.parsed.complex != "" {
		return "", false
	}
	for _, c := range s.parsed.commands {
		text, ok := c.allowedBy(rules)
		if !ok && !p.free(c, s) {
			return "", false
		}
		if ok && used == "" {
			used = text
		}
	}
	return p.saying(used), used != ""
}

// saying names a grant in a decision.
func (p *Policy) saying(text string) string {
	for _, g := range p.Grants {
		if g.rule.text == text {
			return g.said + ": " + text
		}
	}
	return text
}

// free reports whether all rules allow one command of a script, without a question.
func (p *Policy) free(c command, s *subject) bool {
	for l := range p.layers {
		for _, r := range l.ask {
			if r.limits(s.Tool) && (r.command == nil || c.matches(r)) {
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
