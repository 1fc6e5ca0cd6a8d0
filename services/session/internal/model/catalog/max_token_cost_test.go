package catalog

import (
	"math"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestNoUsageCostsMoreThanTheDearest(t *testing.T) {
	tables := map[string]Prices{
		"no prices":                       {},
		"cache writes are dearest":        claude(0.1, 0.7),
		"cache reads are dearest":         {Input: 1, CacheRead: 3, Output: 2},
		"long requests cost more":         {Input: 2, Output: 12, CacheRead: 0.2, LongAfter: 100, LongInput: 2, LongOutput: 1.5},
		"long requests cost less":         {Input: 2, Output: 12, LongAfter: 100, LongInput: 0.5, LongOutput: 0.5},
		"prices that floats do not hold":  {Input: 0.1, Output: 0.3, CacheRead: 0.0001, CacheWrite: 0.7},
		"long requests, factors left out": {Input: 2, Output: 12, LongAfter: 100},
	}
	for name, limits := range known {
		tables[name] = limits.Prices
	}
	const bound = 150
	for name, p := range tables {
		in, out := p.MaxTokenCost(bound)
		for _, input := range []int64{0, 1, 99, 100, 101, bound} {
			for _, output := range []int64{0, 1, 7, 4096} {
				for _, u := range []*sessionv1.Usage{
					{InputTokens: input, OutputTokens: output},
					{CacheReadTokens: input, OutputTokens: output},
					{CacheWriteTokens: input, OutputTokens: output},
					{InputTokens: input / 3, CacheReadTokens: input / 3, CacheWriteTokens: input / 3, OutputTokens: output},
				} {
					most := int64(math.Ceil(bound*in)) + int64(math.Ceil(float64(output)*out))
					if cost := p.Cost(u); cost > most {
						t.Errorf("%s: %v costs %d, more than %d", name, u, cost, most)
					}
				}
			}
		}
	}
}
