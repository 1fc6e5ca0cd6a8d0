package network

import (
	"encoding/json"
	"fmt"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// Operator is a way out of the operator's configuration, which no ceiling limits.
type Operator struct {
	Rules []egress.Rule `json:"rules"`
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

func (n *Network) operatorPolicy(kept string) (*egress.Policy, error) {
	var o Operator
	if err := json.Unmarshal([]byte(kept), &o); err != nil {
		return nil, fmt.Errorf("read the operator's network policy: %w", err)
	}
	return n.proxy.OperatorPolicy(o.Rules, o.Ranges)
}
