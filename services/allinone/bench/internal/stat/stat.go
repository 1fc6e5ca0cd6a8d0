// Package stat describes measured times.
package stat

import (
	"fmt"
	"slices"
	"time"
)

// Times are measured times, in any order.
type Times []time.Duration

// At returns the time that a share q of all times does not exceed; zero without
// any.
func (t Times) At(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return t[int(q*float64(len(t)-1)+0.5)]
}

// String returns the median and the 99th percentile.
func (t Times) String() string {
	if len(t) == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %s p99 %s (n=%d)", Milliseconds(t.At(0.5)), Milliseconds(t.At(0.99)), len(t))
}

// Milliseconds formats a time in milliseconds, to the hundredth.
func Milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
