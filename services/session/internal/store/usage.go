package store

import "math"

// Sum adds two counts that are not negative. A sum that overflows is the
// largest number: imported sessions may have any count.
func Sum(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
