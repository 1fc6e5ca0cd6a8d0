package terminal

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestHowTheUseIsSaid(t *testing.T) {
	for want, u := range map[string]*sessionv1.Usage{
		"0 tokens in, 0 out, no cost":                                          nil,
		"12 tokens in, 3 out, no cost":                                         {InputTokens: 12, OutputTokens: 3},
		"about 12 tokens in, 3 out, $0.0500":                                   {InputTokens: 12, OutputTokens: 3, CostNanoUsd: 5e7, Estimated: true},
		"about 12 tokens in (and 4 from the cache, 0 into it), 0 out, no cost": {InputTokens: 12, CacheReadTokens: 4, Estimated: true},
	} {
		if got := Used(u); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
