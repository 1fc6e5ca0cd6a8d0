package transport

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Count is a number from a provider. It accepts any JSON: a number that is too
// large becomes the largest one, and other values become 0.
type Count int64

// UnmarshalJSON never fails.
func (c *Count) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	s := strings.Trim(string(b), `"`)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		*c = Count(n)
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), math.IsNaN(f):
	case f >= math.MaxInt64:
		*c = math.MaxInt64
	case f <= math.MinInt64:
		*c = math.MinInt64
	default:
		*c = Count(f)
	}
	return nil
}

// Later takes over a later count of the same sum: the last one that is above 0. An earlier one may be an estimate, and
// some servers leave out or clear at the end what they have told before.
func (c *Count) Later(v Count) {
	if v > 0 {
		*c = v
	}
}

const (
	// unknownContext bounds the usage of a model whose context is not known.
	unknownContext = 10_000_000
	// hidden is what a provider may add to a request, in tokens.
	hidden = 10_000
)

// Limits bounds a model's usage, in tokens; 0 is not known.
type Limits struct{ Context, Output int64 }

// Correct corrects a usage. Negative values count as 0. Values that are missing,
// or above the model's limits, are estimated at four bytes a token: sent are the
// bytes of the request and got those of the answer. The warning names the
// corrected values; most often it is empty.
func (l Limits) Correct(u *sessionv1.Usage, sent, got int) (warning string) {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens, &u.ThinkingTokens} {
		*n = max(0, *n)
	}
	most := int64(unknownContext)
	if l.Context > 0 {
		most = max(l.Context, l.Output, int64(sent)) + hidden
	}
	prompt := saturating(u.InputTokens, saturating(u.CacheReadTokens, u.CacheWriteTokens))
	told := saturating(prompt, u.OutputTokens)
	doubted := prompt > most || u.OutputTokens > most
	if prompt == 0 || prompt > most {
		u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens = int64(sent+3)/4, 0, 0
	}
	if u.OutputTokens == 0 || u.OutputTokens > most {
		u.OutputTokens = int64(got+3) / 4
	}
	u.ThinkingTokens = min(u.ThinkingTokens, u.OutputTokens)
	if doubted {
		return fmt.Sprintf("The model provider reports %d tokens for one answer, more than its model can use. Fairlead counts an estimate: %d tokens.",
			told, u.InputTokens+u.OutputTokens+u.CacheReadTokens+u.CacheWriteTokens)
	}
	return ""
}

// saturating adds two numbers that are not negative; it does not overflow.
func saturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
