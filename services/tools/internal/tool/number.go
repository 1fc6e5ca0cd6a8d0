package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// Beyond returns the first number of a JSON text that float64 cannot hold; empty without one.
func Beyond(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		if n, ok := token.(json.Number); ok {
			if _, err := n.Float64(); errors.Is(err, strconv.ErrRange) {
				return n.String()
			}
		}
	}
}

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
