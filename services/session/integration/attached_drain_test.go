package integration

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// A process that drains ends the turn that it has, in all its steps, and gets no other one.
func TestADrainingProcessEndsItsTurns(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent)
	old := f.attach(t, 4)
	first := f.running(t, f.session(t.Context(), t))
	step, _ := old.step()
	old.say(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Drain{Drain: &sessionv1.AttachDrain{}}})
	old.say(delta(step.Id, "By the old one."))
	old.say(wrote(step.Id, nil, &sessionv1.RuntimeCall{Tool: "Bash", ArgumentsJson: `{"command":"ls"}`}))
	step, _ = old.step() // so the server has taken drain
	fresh := f.attach(t, 1)
	second := f.running(t, f.session(t.Context(), t))
	other, _ := fresh.step()
	fresh.say(delta(other.Id, "By the new one."))
	fresh.say(wrote(other.Id, nil))
	if end := finished(t, second()); end.FinalText != "By the new one." {
		t.Errorf("the second turn ended %v", end)
	}
	old.say(delta(step.Id, "Done."))
	old.say(wrote(step.Id, nil))
	if end := finished(t, first()); end.FinalText != "Done." || end.State != complete {
		t.Errorf("the first turn ended %v", end)
	}
	// Messages about the turn that has ended are passed over.
	for range 100 {
		old.say(delta(step.Id, "late"))
	}
	if err := old.stream.CloseSend(); err != nil {
		t.Error(err)
	}
	for range old.got { // until the stream has ended
	}
	if err := <-old.ended; err.Error() != "EOF" {
		t.Errorf("the stream ended with %v", err)
	}
}
