package wire

import (
	"strings"
	"testing"
)

// TestAnotherKindOfBodyNamesNoType of the program's own.
func TestAnotherKindOfBodyNamesNoType(t *testing.T) {
	for _, body := range []string{"[]", "5", `"text"`, "true"} {
		var to struct{ ID string }
		if err := DecodeJSON([]byte(body), &to); err == nil || strings.Contains(err.Error(), "Go ") || !strings.Contains(err.Error(), "JSON object") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
