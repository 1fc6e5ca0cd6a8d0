package catalog

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
