package permission

import (
	"context"
	"slices"
	"strings"
)

// Explanation says how a decision came about.
type Explanation struct {
	// Decision is the decision.
	Decision Decision
	// Layers are the decisions of the profile and each filter, before the mode and the
	// grants count.
	Layers []Decision
	// Remedy says what would let the call run; empty if it may.
	Remedy string
	// Rules would let the call run: as grants if a person is asked, and otherwise as
	// rules that allow.
	Rules []string
	// Grants are the indices of the grants that cover the call.
	Grants []int
}

// Explain decides on a call and says why. Its work ends with the context.
func (p *Policy) Explain(ctx context.Context, q Request) (Explanation, error) {
	return p.explain(q, meterOf(ctx)), ctx.Err()
}

func (p *Policy) explain(q Request, m *meter) Explanation {
	s := p.subject(q, m)
	e := Explanation{Decision: p.decide(s)}
	unruled := false
	for l := range p.layers {
		d := l.judge(s)
		unruled = unruled || d.Kind == Deny && d.unruled
		e.Layers = append(e.Layers, d)
	}
	if s.parsed == nil && q.Tool == bash {
		s = p.whole(q, m)
	}
	if len(p.Grants) > 0 {
		c := p.coverage(s)
		for i, g := range p.Grants {
			if c.covers(g) {
				e.Grants = append(e.Grants, i)
			}
		}
	}
	switch {
	case e.Decision.Kind == Allow:
	case e.Decision.Kind == Ask:
		e.Rules = p.suggest(s)
		e.Remedy = "A person may approve the call, and with a scope beyond the call one of the suggested rules."
	case e.Decision.Planning:
		e.Remedy = "Another mode: in the mode plan nothing is changed before a person approves the plan."
	case unruled && e.Decision.unruled:
		e.Rules = p.allowing(s)
		e.Remedy = "Add one of the suggested rules to those that allow."
		if len(e.Rules) == 0 {
			e.Remedy = "Add a rule that allows the call, or " + q.Tool + " for every call of the tool."
		}
	default:
		e.Remedy = "Only without the rule that denies it: no mode, grant or approval makes a denied call run."
	}
	return e
}

// allowing returns the rules that would let a call run which no rule allows.
func (p *Policy) allowing(s *subject) []string {
	tried := candidates(s)
	if s.Tool == bash {
		for i := range s.parsed.commands {
			text := "Bash(" + exactly(strings.TrimSpace(s.parsed.commands[i].words)) + ")"
			if len(tried) == maxTried {
				break
			}
			if !slices.Contains(tried, text) {
				tried = append(tried, text)
			}
		}
	}
	var rules []string
	for _, text := range tried {
		r, err := parseRule(text)
		if err != nil || s.meter.spent() {
			continue
		}
		with := Policy{Profile: p.Profile.plus(r), Mode: p.Mode}
		for _, f := range p.Filters {
			with.Filters = append(with.Filters, f.plus(r))
		}
		fresh := *s
		fresh.free = nil
		if with.decide(&fresh).Kind != Deny {
			rules = append(rules, text)
		}
	}
	return rules
}

// plus returns the profile with one more rule that allows. A filter that allows what it
// does not restrict stays as it is.
func (p *Profile) plus(r rule) *Profile {
	if p.filter && !p.allows {
		return p
	}
	with := *p
	with.allow = append(slices.Clip(p.allow), r)
	with.commands = with.commands || r.command != nil
	return &with
}
