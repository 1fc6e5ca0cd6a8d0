package codec

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestTheValuesOfABodyAreCounted(t *testing.T) {
	for text, most := range map[string]int{
		`1`: 1, `[]`: 2, `[1,2]`: 3, `{"a":1,"b":[2,3]}`: 5, `"a,b,[{"`: 1, `["\",[","]`: 3, `["\\",1]`: 3, `"`: 1, `"\`: 1, ``: 1,
	} {
		if got := countValues([]byte(text)); got != most {
			t.Errorf("%s: %d, want %d", text, got, most)
		}
	}
	body := []byte("[" + strings.Repeat("{},", mostValues) + "{}]")
	if err := CheckValues(body); apierr.Reason(err) != problem.ReasonBodyMalformed {
		t.Errorf("many values: %v", err)
	}
	if err := CheckValues(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(3, func() { countValues(body) }); n != 0 {
		t.Errorf("counting makes %v allocations", n)
	}
}
