package catalog

import (
	"math"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Cost returns the cost of a model call by the price table, in billionths of a
// US dollar; 0 for a model without prices. It takes the usage of one call,
// because the price may depend on the length of the request. The result is at
// least 0 and at most maxCost.
func (p Prices) Cost(u *sessionv1.Usage) int64 {
	in, out := 1.0, 1.0
	input, cacheRead, cacheWrite := tokens(u.GetInputTokens()), tokens(u.GetCacheReadTokens()), tokens(u.GetCacheWriteTokens())
	if p.LongAfter > 0 && input+cacheRead+cacheWrite > float64(p.LongAfter) {
		in, out = factor(p.LongInput), factor(p.LongOutput)
	}
	dollarsPerMillion := in*(input*p.Input+cacheRead*p.CacheRead+cacheWrite*p.CacheWrite) + out*tokens(u.GetOutputTokens())*p.Output
	return int64(math.Round(min(dollarsPerMillion*1000, maxCost)))
}

// maxCost is a million US dollars in billionths: the sum of thousands of such
// calls does not overflow.
const maxCost = 1e15

func tokens(n int64) float64 { return float64(max(0, n)) }

func factor(f float64) float64 {
	if f == 0 {
		return 1
	}
	return f
}

// MaxTokenCost returns the most that one token of input and one of output can cost in
// a request of at most this many input tokens, in billionths of a US dollar: no
// usage of such a request costs more by Cost.
func (p Prices) MaxTokenCost(inputTokens int64) (input, output float64) {
	in, out := 1.0, 1.0
	if p.LongAfter > 0 && inputTokens > p.LongAfter { // the actual request may be shorter, and then costs the plain price
		in, out = max(1, factor(p.LongInput)), max(1, factor(p.LongOutput))
	}
	// Dollars for a million tokens are thousands of billionths for one.
	return 1000 * in * max(p.Input, p.CacheRead, p.CacheWrite), 1000 * out * p.Output
}
