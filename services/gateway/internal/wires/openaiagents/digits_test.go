package openaiagents

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is kept of an agent in metadata comes back with every digit of its schemas.
func TestEveryDigitIsKept(t *testing.T) {
	for _, number := range []string{"12345678901234567890", "0.1000000000000000055", "1e400"} {
		d := sessionDoc{Agent: map[string]any{"text": json.RawMessage(`{"const":` + number + `}`)}, Environment: map[string]any{}}
		text, err := d.json("")
		if err != nil {
			t.Fatal(err)
		}
		again := &sessionDoc{}
		if !kept(text, sessionDocName, again) {
			t.Fatalf("%s cannot be read again", text)
		}
		if b, err := json.Marshal(again.Agent); err != nil || !strings.Contains(string(b), number) {
			t.Errorf("%s comes back as %s (%v)", number, b, err)
		}
	}
}
