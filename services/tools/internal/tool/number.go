package tool

import (
	"errors"
	"strconv"
)

// Number is a number in checked arguments. JSON has no largest number: one beyond float64 is infinite, and
// the tool's own bounds cut it.
type Number float64

// UnmarshalJSON reads any number of JSON.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return err
	}
	*n = Number(f)
	return nil
}

// Within returns the number as an integer, cut to two bounds.
func (n Number) Within(low, high int64) int64 {
	switch {
	case float64(n) >= float64(high):
		return high
	case float64(n) <= float64(low):
		return low
	default:
		return int64(n)
	}
}
