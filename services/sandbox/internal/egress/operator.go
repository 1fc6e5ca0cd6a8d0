package egress

import (
	"errors"
	"fmt"
	"net/netip"
)

// OperatorPolicy compiles a policy of the operator's own configuration, which no ceiling limits. Hosts that
// its rules name may also be at special addresses in ranges; ranges do not open these addresses to requests
// that name an address. The error wraps ErrPolicy.
func (p *Proxy) OperatorPolicy(rules []Rule, ranges []string) (*Policy, error) {
	own := make([]Rule, len(rules))
	for i, r := range rules {
		own[i] = r
		own[i].TLS, own[i].Credential = "", ""
	}
	ceiling, err := compileAll(own)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	policy, err := newPolicy(rules, ceiling, p.credentials)
	if policy == nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	faults := []error{err}
	for _, r := range ranges {
		prefix, err := netip.ParsePrefix(r)
		if err == nil {
			_, err = prefixPattern(prefix)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("range %q: %w", r, err))
			continue
		}
		policy.ranges = append(policy.ranges, prefix)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return policy, nil
}
