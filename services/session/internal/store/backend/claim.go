package backend

import (
	"maps"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// WithinLimits leaves of the sessions that could be claimed, in their order,
// those that the claim's limits allow.
func WithinLimits(keys []store.Key, c store.Claim) []store.Key {
	held := maps.Clone(c.Held)
	if held == nil {
		held = map[string]int{}
	}
	var out []store.Key
	for _, k := range keys {
		if c.Limit > 0 && len(out) == c.Limit {
			break
		}
		if c.TenantLimit > 0 && held[k.Tenant] >= c.TenantLimit {
			continue
		}
		held[k.Tenant]++
		out = append(out, k)
	}
	return out
}
