package terminal

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestATurnShowsItsRuntimeAndFlags(t *testing.T) {
	for want, s := range map[string]*sessionv1.TurnStarted{
		"play:test": {Model: "play:test", Runtime: "native"},
		"":          {},
		"play:test attached:mine runtime=mine (TARGETING_MATCH) claude-code-keep-alive (ERROR)": {
			Model: "play:test", Runtime: "attached:mine",
			Flags: []*sessionv1.FlagDecision{{Flag: "runtime", Variant: "mine", Reason: "TARGETING_MATCH"}, {Flag: "claude-code-keep-alive", Reason: "ERROR"}},
		},
	} {
		if got := Summary(&sessionv1.Event{Body: &sessionv1.Event_TurnStarted{TurnStarted: s}}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
