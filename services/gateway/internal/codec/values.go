package codec

import (
	"fmt"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// mostValues is how many values the JSON of a foreign protocol may have. Decoded, a small value needs a hundred times
// its bytes.
const mostValues = 200_000

// CheckValues refuses JSON with too many values, before anything decodes it.
func CheckValues(data []byte) error {
	if values := countValues(data); values > mostValues {
		return problem.BodyMalformed("", fmt.Sprintf("it has %d JSON values; send at most %d, with long lists as one text", values, mostValues))
	}
	return nil
}

// countValues counts the values of a JSON text. Names of members count with their values, and an empty list as one.
func countValues(data []byte) int {
	values := 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case ',', '[', '{':
			values++
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return values
}
