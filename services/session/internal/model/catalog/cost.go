package catalog

import (
	"math"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Cost gives what a model call costs by the price table, in billionths of a US
// dollar; 0 for a model without prices. It takes the usage of one call: the
// price may depend on the length of the request.
func (p Prices) Cost(u *sessionv1.Usage) int64 {
	in, out := 1.0, 1.0
	if prompt := u.GetInputTokens() + u.GetCacheReadTokens() + u.GetCacheWriteTokens(); p.LongAfter > 0 && prompt > p.LongAfter {
		in, out = factor(p.LongInput), factor(p.LongOutput)
	}
	dollarsPerMillion := in*(float64(u.GetInputTokens())*p.Input+
		float64(u.GetCacheReadTokens())*p.CacheRead+
		float64(u.GetCacheWriteTokens())*p.CacheWrite) +
		out*float64(u.GetOutputTokens())*p.Output
	return int64(math.Round(dollarsPerMillion * 1000))
}

func factor(f float64) float64 {
	if f == 0 {
		return 1
	}
	return f
}
