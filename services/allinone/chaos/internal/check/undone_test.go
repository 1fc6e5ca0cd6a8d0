package check

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

func TestOnlyARollbackAfterTheCommandUndoesItsEffect(t *testing.T) {
	asks := &sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{ArgumentsJson: `{"command":"echo 'x/end' >> effects"}`}}}
	rewound := &sessionv1.Event{Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{}}}
	tests := []struct {
		name string
		log  []*sessionv1.Event
		want bool
	}{
		{"after it", []*sessionv1.Event{asks, rewound}, true},
		{"before it", []*sessionv1.Event{rewound, asks}, false},
		{"none", []*sessionv1.Event{asks}, false},
		{"of another command", []*sessionv1.Event{rewound}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := restored(&record.Session{Log: tt.log}, "x/end"); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
