package integration

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestASessionContinuesAfterARestartWithTheWholeConversation(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "tools please")
	f.restart(t)
	events := f.turn(ctx, t, s, "remember")
	if end := finished(t, events); end.FinalText != "the second turn" {
		t.Errorf("the model saw %q, want the second turn of one conversation", end.FinalText)
	}
	if got := len(f.messages(ctx, t, s)); got != 6 {
		t.Errorf("there are %d messages, want 6", got)
	}
	f.log(ctx, t, s)
}

func TestARestartInTheMiddleOfAStepRestartsTheStepOnce(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - steps: [{text: [one, " two", " three", " four", " five", " six"], delay: 150ms}]
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	created, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetTextDelta() != nil })
	f.restart(t)
	end := f.waitForEnd(ctx, t, created.Turn.Name)
	if end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "one two three four five six" {
		t.Errorf("the turn ended %v", end)
	}
	log := f.log(ctx, t, s)
	if n := strings.Count(names(log), "step.restarted"); n != 1 {
		t.Errorf("there are %d step.restarted in %s", n, names(log))
	}
	if n := strings.Count(names(log), "turn.finished"); n != 1 {
		t.Errorf("the turn ended %d times", n)
	}
}

func TestARestartInTheMiddleOfACallAsksAgainByTheSameID(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "block"}); err != nil {
		t.Fatal(err)
	}
	first := map[string]bool{<-f.peers.blocked: true, <-f.peers.blocked: true}
	f.restart(t)
	second := map[string]bool{<-f.peers.blocked: true, <-f.peers.blocked: true}
	for id := range first {
		if !second[id] {
			t.Errorf("call %s was not asked for again; instead %v", id, second)
		}
	}
	epochs := f.peers.epochs
	if epochs[0] >= epochs[len(epochs)-1] {
		t.Errorf("the epochs of the calls are %v, want them to rise", epochs)
	}
}
