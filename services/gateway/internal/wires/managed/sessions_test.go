package managed

import (
	"strings"
	"testing"
)

func TestWhatDoesNotFitIntoASessionIsNamed(t *testing.T) {
	large := strings.Repeat("x", mostDoc)
	for field, d := range map[string]*sessionDoc{
		"metadata": {Metadata: map[string]string{"a": large}},
		"agent":    {Metadata: map[string]string{"a": large}, Agent: map[string]any{"system": "s"}},
	} {
		if _, err := d.json(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	fits := &sessionDoc{Agent: map[string]any{"system": large}}
	if text, err := fits.json(); err != nil || fits.Agent["system"] != nil || len(text) > mostDoc {
		t.Errorf("a long prompt is kept, %v", err)
	}
}
