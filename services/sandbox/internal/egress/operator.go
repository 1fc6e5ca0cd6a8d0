package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
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

// Operator is a way out of the operator's configuration, which no ceiling limits.
type Operator struct {
	Rules []Rule `json:"rules"`
	// Ranges are special addresses that the rules' names may resolve to.
	Ranges []string `json:"ranges,omitempty"`
}

// EncodeOperator checks a way out and returns the form that a sandbox stores.
func (n *Network) EncodeOperator(o Operator) (box.OperatorNetwork, error) {
	if _, err := n.proxy.OperatorPolicy(o.Rules, o.Ranges); err != nil {
		return "", err
	}
	raw, err := json.Marshal(o)
	return box.OperatorNetwork(raw), err
}

func (n *Network) operatorPolicy(kept string) (*Policy, error) {
	var o Operator
	if err := json.Unmarshal([]byte(kept), &o); err != nil {
		return nil, fmt.Errorf("read the operator's network policy: %w", err)
	}
	return n.proxy.OperatorPolicy(o.Rules, o.Ranges)
}
