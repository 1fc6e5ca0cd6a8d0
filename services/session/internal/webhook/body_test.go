package webhook

import (
	"encoding/json"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestABodyKeepsTheOutputAsItWasWritten(t *testing.T) {
	output := `{"z": 9007199254740993, "a": [123456789012345678901234567890, 1e400, -0, 1.0], "s": "<&>"}`
	body, err := newBody(&sessionv1.Turn{Name: "sessions/s/turns/t", OutputJson: output})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Data struct{ OutputJSON string } }
	if err := json.Unmarshal(body, &got); err != nil || got.Data.OutputJSON != output {
		t.Errorf("got %s (%v)", got.Data.OutputJSON, err)
	}
}
