package plan

import (
	"maps"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// WithinLimits returns the sessions that the claim's limits allow, in the given
// order.
func WithinLimits(free []store.Lease, c store.Claim) []store.Lease {
	held := maps.Clone(c.Held)
	if held == nil {
		held = map[string]int{}
	}
	var out []store.Lease
	for _, l := range free {
		if c.Limit > 0 && len(out) == c.Limit {
			break
		}
		if c.TenantLimit > 0 && held[l.Tenant] >= c.TenantLimit {
			continue
		}
		held[l.Tenant]++
		out = append(out, l)
	}
	return out
}
