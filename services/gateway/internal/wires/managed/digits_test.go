package managed

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is kept of an agent in metadata comes back with every digit of its schemas.
func TestEveryDigitIsKept(t *testing.T) {
	for _, number := range []string{"12345678901234567890", "0.1000000000000000055", "1e400"} {
		text := kept{Session: &sessionDoc{Agent: map[string]any{"input_schema": json.RawMessage(`{"const":` + number + `}`)}}}.json()
		d := keptIn(text).Session
		if d == nil {
			t.Fatalf("%s cannot be read again", text)
		}
		if b, err := json.Marshal(d.Agent); err != nil || !strings.Contains(string(b), number) {
			t.Errorf("%s comes back as %s (%v)", number, b, err)
		}
	}
}
