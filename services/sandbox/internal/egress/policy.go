package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Policy is what the sandboxes of a workspace may reach: what both one of its rules and one of the
// operator's allow. It does not change.
type Policy struct {
	rules   []*rule
	ceiling []*rule
	ranges  []netip.Prefix // special addresses that its names may be at
}

// RefusalError is why a request was not sent.
type RefusalError struct {
	Outcome Outcome
	Message string // for the client: what, why, what to do
}

// Error returns the message.
func (r *RefusalError) Error() string { return r.Message }

func deny(format string, args ...any) *RefusalError {
	return &RefusalError{Outcome: Denied, Message: fmt.Sprintf(format, args...)}
}

func compileAll(rules []Rule) ([]*rule, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d rules are more than %d", len(rules), maxRules)
	}
	all := make([]*rule, len(rules))
	var faults []error
	for i, r := range rules {
		c, err := compile(r)
		if err != nil {
			faults = append(faults, fmt.Errorf("rule %d (%s): %w", i+1, c.Name, err))
		}
		all[i] = c
	}
	return all, errors.Join(faults...)
}

// compileCeiling checks the operator's rules, which define destinations only.
func compileCeiling(rules []Rule) ([]*rule, error) {
	all, err := compileAll(rules)
	faults := []error{err}
	for i, r := range rules {
		if r.TLS != "" || r.Credential != "" {
			faults = append(faults, fmt.Errorf("rule %d (%s): the ceiling has neither tls nor credential", i+1, r.Host))
		}
	}
	return all, errors.Join(faults...)
}

// newPolicy checks rules against the ceiling, as far as that is possible without requests.
func newPolicy(rules []Rule, ceiling []*rule, credentials map[string]*credential) (*Policy, error) {
	all, err := compileAll(rules)
	if err != nil {
		return nil, err
	}
	var faults []error
	for i, r := range all {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("rule %d (%s): %w", i+1, r.Name, fmt.Errorf(format, args...)))
		}
		if !slices.ContainsFunc(ceiling, func(c *rule) bool { return c.host.covers(r.host) }) {
			fault("host: %w", ErrCeiling)
		}
		for _, port := range r.ports {
			if len(r.Ports) > 0 && !slices.ContainsFunc(ceiling, func(c *rule) bool { return c.host.covers(r.host) && slices.Contains(c.ports, port) }) {
				fault("ports: %d: %w", port, ErrCeiling)
			}
		}
		if r.Credential == "" {
			continue
		}
		switch c := credentials[r.Credential]; {
		case c == nil:
			fault("credential: %q: %w", r.Credential, ErrCredential)
		case !c.covers(r.host):
			fault("credential: %q is not meant for this host: %w", r.Credential, ErrCredential)
		}
	}
	return &Policy{rules: all, ceiling: ceiling}, errors.Join(faults...)
}

// connect decides on CONNECT and returns the rule that lets a stream of bytes to a host out.
func (p *Policy) connect(t target) (*rule, error) {
	why := unknownHost(t)
	for _, r := range p.rules {
		switch {
		case !r.host.matches(t):
		case !slices.Contains(r.ports, t.port):
			why = deny("port %d of %s is not allowed: rule %q allows %v", t.port, t.host(), r.Name, r.ports)
		case r.TLS == Upgrade:
			why = deny("rule %q is for http://%s/, which goes out by TLS: use that address", r.Name, t.host())
		case r.TLS == Pass && r.sees():
			why = deny("rule %q allows some methods or paths, which cannot be seen in TLS that passes: use http://, or set the rule's tls to intercept", r.Name)
		case r.TLS == Intercept:
			return r, nil // the requests inside are checked against the ceiling
		case !p.below(t, "", "", false):
			why = deny("%s is allowed by rule %q, but not by the operator", t.authority(), r.Name)
		default:
			return r, nil
		}
	}
	return nil, why
}

// request decides on a request. It returns the rule that allows it and its target. secret means that the
// request came over TLS that the proxy ended.
func (p *Policy) request(t target, method, escaped, decoded string, secret bool) (*rule, target, error) {
	why := unknownHost(t)
	for _, r := range p.rules {
		to := t
		if r.TLS == Upgrade && t.port == 80 {
			to.port = 443
		}
		switch {
		case !r.host.matches(t) || r.TLS == Raw || secret && r.TLS != Intercept:
		case !secret && r.TLS == Intercept:
			why = deny("rule %q is only for https://%s/", r.Name, t.host())
		case !slices.Contains(r.ports, to.port):
			why = deny("port %d of %s is not allowed: rule %q allows %v", to.port, t.host(), r.Name, r.ports)
		case !r.method(method):
			why = deny("%s is not allowed at %s: rule %q allows %v", method, t.host(), r.Name, r.Methods)
		case len(r.Paths) > 0 && checkPath(escaped, decoded) != nil:
			why = deny("rule %q allows some paths of %s: %v", r.Name, t.host(), checkPath(escaped, decoded))
		case !r.path(decoded):
			why = deny("this path of %s is not allowed by rule %q", t.host(), r.Name)
		case !p.below(to, method, decoded, true) || p.pathful(to) && checkPath(escaped, decoded) != nil:
			why = deny("this request to %s is allowed by rule %q, but not by the operator", to.authority(), r.Name)
		default:
			return r, to, nil
		}
	}
	return nil, t, why
}

func unknownHost(t target) error {
	if t.addr.IsValid() {
		return deny("the address %s is not allowed: ask for a host by its name, or have a rule for the address added", t.host())
	}
	return deny("the host %s is not allowed: no rule of this workspace's network names it", t.host())
}

// below reports whether the operator allows the request. If the proxy cannot see the request, only rules
// that do not inspect requests count.
func (p *Policy) below(t target, method, decoded string, sight bool) bool {
	return slices.ContainsFunc(p.ceiling, func(c *rule) bool {
		if !c.host.matches(t) || !slices.Contains(c.ports, t.port) {
			return false
		}
		if !sight {
			return !c.sees()
		}
		return c.method(method) && c.path(decoded)
	})
}

// pathful reports whether the operator's permission depends on the path.
func (p *Policy) pathful(t target) bool {
	return slices.ContainsFunc(p.ceiling, func(c *rule) bool { return c.host.matches(t) && len(c.Paths) > 0 })
}

// ceilingSees reports whether the operator's permission depends on the request.
func (p *Policy) ceilingSees(t target) bool {
	return slices.ContainsFunc(p.ceiling, func(c *rule) bool { return c.host.matches(t) && c.sees() })
}

// reaches reports whether a special address may be dialed for a target: a range must name it, in the
// workspace's rules and in the operator's. A rule limited to some methods or paths counts only for requests
// to the address, which were checked against it. It does not count for a name that resolves to the address.
func (p *Policy) reaches(a netip.Addr, t target) bool {
	named := func(all []*rule) bool {
		return slices.ContainsFunc(all, func(r *rule) bool {
			return r.host.prefix.IsValid() && opens(r.host.prefix, a) && slices.Contains(r.ports, t.port) && (t.addr.IsValid() || !r.sees())
		})
	}
	if slices.ContainsFunc(p.ranges, func(r netip.Prefix) bool { return opens(r, a) }) {
		return true
	}
	return named(p.rules) && named(p.ceiling)
}
