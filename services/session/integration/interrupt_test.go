package integration

import (
	"context"
	"strings"
	"sync"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// startFaulty is start with a store that fails where the test wants it to. tell
// is told of every store that is opened, before anything uses it.
func startFaulty(t *testing.T, scenario string, tell func(*faulty.Store), change ...func(*session.Config)) *fixture {
	t.Helper()
	wrap := func(s store.Store) store.Store {
		f := faulty.New(s)
		tell(f)
		return f
	}
	return startOn(t, wrap, scenario, change...)
}

func (f *fixture) create(ctx context.Context, t *testing.T, session, text string) *sessionv1.Turn {
	t.Helper()
	resp, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: session, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Turn
}

func (f *fixture) interrupt(ctx context.Context, t *testing.T, r *sessionv1.InterruptSessionRequest) {
	t.Helper()
	if _, err := f.InterruptSession(ctx, r); err != nil {
		t.Error(err)
	}
}

func TestTwoInterruptsOfATurnThatWaitsEndItOnce(t *testing.T) {
	t.Parallel()
	var db *faulty.Store
	f := startFaulty(t, asking, func(s *faulty.Store) { db = s })
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	held := db.Hold(faulty.Inbox, 1, faulty.Before)
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	<-held.Reached
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	held.Resume()
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the turn ended %v", end)
	}
	if end := finished(t, f.turn(ctx, t, s, "more")); end.FinalText != "ok" {
		t.Errorf("the next turn ended %v", end)
	}
	want := `user: "write"
assistant: use Bash, use Write
user: OK, INTERRUPTED
user: "more"
assistant: "ok"`
	if got := shape(f.messages(ctx, t, s)); got != want {
		t.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
}

// hooked is a store whose Inbox runs a hook first.
type hooked struct {
	store.Store
	before func()
}

func (h *hooked) Inbox(ctx context.Context, l store.Lease) ([]store.Command, error) {
	h.before()
	return h.Store.Inbox(ctx, l)
}

func TestAnInterruptJustBeforeATurnWouldWaitStopsIt(t *testing.T) {
	t.Parallel()
	hook := func() {}
	wrap := func(s store.Store) store.Store {
		return &hooked{Store: s, before: func() { hook() }}
	}
	f := startOn(t, wrap, asking)
	ctx := t.Context()
	s := f.session(ctx, t)
	var once sync.Once
	hook = func() {
		f.peers.mu.Lock()
		asked := f.peers.asked > 0
		f.peers.mu.Unlock()
		if asked { // the calls were made, and the worker looks at the inbox before it lets the turn wait
			once.Do(func() { f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s}) })
		}
	}
	turn := f.create(ctx, t, s, "write")
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the turn ended %v", end)
	}
}

func TestATakeoverThatFindsAnInterruptStopsTheCallsThatRun(t *testing.T) {
	t.Parallel()
	var held *faulty.Pause
	f := startFaulty(t, slow, func(s *faulty.Store) { held = s.Hold(faulty.Load, 1, faulty.Before) })
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "block")
	held.Resume()
	<-f.peers.blocked
	<-f.peers.blocked
	f.restart(t)
	<-held.Reached
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	held.Resume()
	f.waitForEnd(ctx, t, turn.Name)
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if len(f.peers.cancelled) != 2 {
		t.Errorf("%d calls were cancelled, want the 2 that a worker before began", len(f.peers.cancelled))
	}
}

func TestAnInterruptKnowsHowCallsEndedAlsoWhenToolsIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "block")
	<-f.peers.blocked
	<-f.peers.blocked
	f.peers.mu.Lock()
	f.peers.broken["CancelCall"] = 2
	f.peers.mu.Unlock()
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, turn.Name)
	for _, e := range f.log(ctx, t, s) {
		if c := e.GetToolCallFinished(); c != nil && c.Outcome != sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED {
			t.Errorf("call %s ended %v", c.CallId, c.Outcome)
		}
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if len(f.peers.cancelled) != 2 || f.peers.broken["CancelCall"] != 0 {
		t.Errorf("%d calls were cancelled, want 2, after 2 errors", len(f.peers.cancelled))
	}
}

func TestAnInterruptBetweenAttemptsLeavesNothingOfTheBrokenAnswer(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - steps: [{text: [Hi, " all"], error: {status: 529, midway: 1, times: 2, retry_after: 1m}}]
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "go"}, func(e *sessionv1.Event) {
		if e.GetWarning() != nil {
			f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
		}
	})
	if got := text(valid(f.log(ctx, t, s))); got != "" {
		t.Errorf("people see %q, which is not in the conversation\n%s", got, shape(f.messages(ctx, t, s)))
	}
}

func TestATurnQueuedDuringATakeoverIsNotVoided(t *testing.T) {
	t.Parallel()
	var held *faulty.Pause
	f := startFaulty(t, `
turns:
  - when: go
    steps: [{text: [one, " two", " three"], delay: 200ms}]
fallback: {steps: [{text: [ok]}]}
`, func(s *faulty.Store) { held = s.Hold(faulty.Load, 1, faulty.Before) })
	ctx := t.Context()
	s := f.session(ctx, t)
	f.create(ctx, t, s, "go")
	held.Resume()
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetTextDelta() != nil })
	f.restart(t)
	<-held.Reached
	next := f.create(ctx, t, s, "next")
	held.Resume()
	f.waitForEnd(ctx, t, next.Name)
	if got := order(valid(f.log(ctx, t, s))); len(got) != 2 || got[0] != "go" || got[1] != "next" {
		t.Errorf("of what is not void the turns are %q", got)
	}
	if got := text(valid(f.log(ctx, t, s))); got != "one two threeok" {
		t.Errorf("what is not void says %q", got)
	}
}

func TestCancelQueuedAlsoEndsTurnsThatCameDuringAnAnswer(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	first := f.create(ctx, t, s, "slow")
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetTextDelta() != nil })
	second := f.create(ctx, t, s, "second")
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s, CancelQueued: true})
	f.waitForEnd(ctx, t, second.Name) // the queued one ends before the running one
	f.waitForEnd(ctx, t, first.Name)
	if got := f.states(ctx, t, s); got != "INTERRUPTED INTERRUPTED" {
		t.Errorf("the turns ended %s", got)
	}
}

func TestClaimsBeforeATurnBeganDoNotCountAgainstIt(t *testing.T) {
	t.Parallel()
	f := startFaulty(t, hello, func(s *faulty.Store) {
		s.Fail(faulty.Load, 1, faulty.Before, nil)
		s.Fail(faulty.Load, 2, faulty.Before, nil)
	}, func(c *session.Config) { c.MaxClaims = 1 })
	ctx := t.Context()
	if end := finished(t, f.turn(ctx, t, f.session(ctx, t), "hello")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
}

func TestAStepWithCallsTellsItsUsage(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - steps: [{tools: [{name: Bash, input: {}}], usage: {input_tokens: 7, output_tokens: 3}}, {text: [done]}]
`)
	ctx := t.Context()
	for _, e := range f.turn(ctx, t, f.session(ctx, t), "go") {
		if end := e.GetStepFinished(); e.Step == 1 && end != nil && (end.Usage.GetInputTokens() != 7 || end.StopReason != "tool_use") {
			t.Errorf("step 1 ended %v", end)
		}
	}
}

func TestAnInterruptStopsTheModelAndLeavesAWellFormedTranscript(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	interrupted := false
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "slow"}, func(e *sessionv1.Event) {
		if e.GetTextDelta() != nil && !interrupted {
			interrupted = true
			if _, err := f.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: s}); err != nil {
				t.Error(err)
			}
		}
	})
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED || end.Error.GetReason() != "INTERRUPTED" {
		t.Errorf("the turn ended %v", end)
	}
	ms := f.messages(ctx, t, s)
	if len(ms) != 2 || ms[1].Blocks[0].GetContent().GetText().GetText() != text(events) {
		t.Errorf("the conversation is\n%s\nbut people saw %q", shape(ms), text(events))
	}
	if end := finished(t, f.turn(ctx, t, s, "and now")); end.FinalText != "ok" {
		t.Errorf("the next turn ended %v", end)
	}
}

func TestAnInterruptStopsRunningCalls(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	go func() {
		<-f.peers.blocked
		<-f.peers.blocked
		_, _ = f.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: s})
	}()
	events := f.turn(ctx, t, s, "block")
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the turn ended %v", end)
	}
	want := `user: "block"
assistant: "Wait", use Block, use Block
user: INTERRUPTED, INTERRUPTED`
	if got := shape(f.messages(ctx, t, s)); got != want {
		t.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
	if len(f.peers.cancelled) != 2 {
		t.Errorf("%d calls were cancelled, want 2", len(f.peers.cancelled))
	}
}

func TestAnInterruptWithNothingToStopChangesNothing(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	resp, err := f.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: s})
	if err != nil || resp.Turn != "" {
		t.Errorf("got %v, %v", resp, err)
	}
	if end := finished(t, f.turn(ctx, t, s, "hello")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn after it ended %v", end)
	}
}

func TestCancelQueuedEndsTheTurnsThatWait(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	for _, text := range []string{"block", "b", "c"} {
		if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	<-f.peers.blocked
	if _, err := f.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: s, CancelQueued: true}); err != nil {
		t.Fatal(err)
	}
	f.turn(ctx, t, s, "last")
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, turn := range turns.Turns {
		states = append(states, strings.TrimPrefix(turn.State.String(), "TURN_STATE_"))
	}
	if got := strings.Join(states, " "); got != "INTERRUPTED INTERRUPTED INTERRUPTED COMPLETE" {
		t.Errorf("the turns ended %s", got)
	}
	f.log(ctx, t, s)
}
