package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/media/mediatest"
)

const arrivals = `
turns:
  - when: talk
    steps: [{text: [one, " two"], delay: 1s}]
  - when: write
    steps: [{tools: [{name: Bash, input: {command: x}}, {name: Write, input: {file_path: a}}]}, {text: [written]}]
  - when: block
    steps: [{text: [Wait], tools: [{name: Bash, input: {}}, {name: Block, input: {}}]}, {text: [never]}]
  - when: why
    steps: [{text: [because]}]
fallback: {steps: [{text: [ok]}]}
`

// arrive sends a message while a turn is active.
func (f *fixture) arrive(ctx context.Context, t *testing.T, session, text string, on sessionv1.OnActive) *sessionv1.Turn {
	t.Helper()
	resp, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: session, Text: text, OnActive: on})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Turn
}

func (f *fixture) get(ctx context.Context, t *testing.T, turn string) *sessionv1.Turn {
	t.Helper()
	resp, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: turn})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Turn
}

// talk begins a turn and returns when its answer has begun and not ended.
func (f *fixture) talk(ctx context.Context, t *testing.T) (session string, turn *sessionv1.Turn) {
	t.Helper()
	session = f.session(ctx, t)
	turn = f.create(ctx, t, session, "talk")
	f.followUntil(ctx, t, session, func(e *sessionv1.Event) bool { return e.GetTextDelta() != nil })
	return session, turn
}

func (f *fixture) wantConversation(ctx context.Context, t *testing.T, session, want string) {
	t.Helper()
	if got := shape(f.messages(ctx, t, session)); got != strings.TrimSpace(want) {
		t.Errorf("the conversation is\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}

func TestASteeredMessageMakesATurnGoOnThatWouldHaveEnded(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s, turn := f.talk(ctx, t)
	var again []*sessionv1.Event
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "why?", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER, RequestId: "steer"}, nil)
	if got, want := names(events), "turn.queued turn.steered step.started text.started text.delta text.finished step.finished turn.finished turn.finished"; got != want {
		t.Errorf("the stream of the steered turn showed\n%s\nwant\n%s", got, want)
	}
	end := finished(t, events)
	if end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "because" {
		t.Errorf("the steered turn ended %v", end)
	}
	steered := f.get(ctx, t, events[0].Turn)
	if steered.SteeredInto != turn.Name || steered.Head == "" || steered.GetUsage().GetOutputTokens() != 0 {
		t.Errorf("the steered turn is %v", steered)
	}
	first := f.get(ctx, t, turn.Name)
	if first.FinalText != "because" || first.Steps != 2 || first.Head != steered.Head {
		t.Errorf("the turn that took it in is %v", first)
	}
	f.wantConversation(ctx, t, s, `
user: "talk"
assistant: "one two"
user: "why?"
assistant: "because"`)
	// Attaching again behind turn.steered shows the rest of the same stream.
	at := slices.IndexFunc(events, func(e *sessionv1.Event) bool { return e.GetTextDelta() != nil })
	again = f.runTurn(ctx, t, &sessionv1.RunTurnRequest{
		Parent: s, Text: "why?", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER, RequestId: "steer", AfterSeq: events[at].Seq,
	}, nil)
	if got, want := names(again), names(events[at+1:]); got != want {
		t.Errorf("attached again, the stream showed\n%s\nwant\n%s", got, want)
	}
}

func TestMessagesThatSteerATurnThatWaitsJoinItInOrderOnceItGoesOn(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	asked := f.waitForAsk(ctx, t, s)
	queued := f.arrive(ctx, t, s, "later", sessionv1.OnActive_ON_ACTIVE_QUEUE)
	first := f.arrive(ctx, t, s, "mind this", sessionv1.OnActive_ON_ACTIVE_STEER)
	image := &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: "image/png", Data: mediatest.Picture("image/png")}}}
	resp, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{
		Parent: s, Text: "why?", Content: []*commonv1.Content{image}, OnActive: sessionv1.OnActive_ON_ACTIVE_STEER,
		Limits:      &sessionv1.TurnLimits{MaxSteps: 1},
		ClientTools: []*sessionv1.ClientTool{{Name: "where"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: asked.CallId, Digest: asked.Digest, Approved: true}); err != nil {
		t.Fatal(err)
	}
	f.waitForEnd(ctx, t, queued.Name)
	f.wantConversation(ctx, t, s, `
user: "write"
assistant: use Bash, use Write
user: OK, OK
user: "mind this"
user: "why?", ""
assistant: "because"
user: "later"
assistant: "ok"`)
	for _, name := range []string{turn.Name, first.Name, resp.Turn.Name} {
		if got := f.get(ctx, t, name); got.State != sessionv1.TurnState_TURN_STATE_COMPLETE || got.FinalText != "because" {
			t.Errorf("turn %s ended %v", name, got)
		}
	}
	session, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	if err != nil || session.Session.FinishedTurns != 4 {
		t.Errorf("the session counts %v, %v", session, err)
	}
}

func TestASteeredMessageRunsAsIfQueuedWhenTheTurnMayMakeNoOtherStep(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "talk", Limits: &sessionv1.TurnLimits{MaxSteps: 1}}); err != nil {
		t.Fatal(err)
	}
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetTextDelta() != nil })
	steer := f.arrive(ctx, t, s, "why?", sessionv1.OnActive_ON_ACTIVE_STEER)
	f.waitForEnd(ctx, t, steer.Name)
	if got := f.get(ctx, t, steer.Name); got.SteeredInto != "" || got.FinalText != "because" || got.Steps != 1 {
		t.Errorf("the turn is %v", got)
	}
	if got := f.states(ctx, t, s); got != "COMPLETE COMPLETE" {
		t.Errorf("the turns ended %s", got)
	}
}

func TestAnInterruptEndsATurnTogetherWithWhatSteeredIt(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	asked := f.waitForAsk(ctx, t, s)
	steer := f.arrive(ctx, t, s, "block now", sessionv1.OnActive_ON_ACTIVE_STEER)
	if _, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: asked.CallId, Digest: asked.Digest, Approved: true}); err != nil {
		t.Fatal(err)
	}
	<-f.peers.blocked
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, steer.Name)
	for _, name := range []string{turn.Name, steer.Name} {
		if got := f.get(ctx, t, name); got.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED || got.FinalText != "Wait" {
			t.Errorf("turn %s ended %v", name, got)
		}
	}
}

func TestARollbackUndoesTheActiveTurnAndRunsInItsPlace(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "before")
	turn := f.create(ctx, t, s, "block")
	<-f.peers.blocked
	queued := f.arrive(ctx, t, s, "later", sessionv1.OnActive_ON_ACTIVE_QUEUE)
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "why?", OnActive: sessionv1.OnActive_ON_ACTIVE_ROLLBACK}, nil)
	if end := finished(t, events); end.FinalText != "because" {
		t.Errorf("the turn that rolls back ended %v", end)
	}
	wantWarning(t, events, "FILES_RESTORED")
	if want := []string{lastPart(turn.Name) + ".1.files"}; !slices.Equal(f.peers.restored, want) {
		t.Errorf("restored %v, want %v", f.peers.restored, want)
	}
	f.waitForEnd(ctx, t, queued.Name)
	undone := f.get(ctx, t, turn.Name)
	if undone.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED || undone.Error.GetReason() != "ROLLED_BACK" || undone.GetUsage().GetOutputTokens() == 0 {
		t.Errorf("the turn that was undone is %v", undone)
	}
	f.wantConversation(ctx, t, s, `
user: "before"
assistant: "ok"
user: "why?"
assistant: "because"
user: "later"
assistant: "ok"`)
	log := f.log(ctx, t, s)
	if got := text(valid(log)); got != "okbecauseok" {
		t.Errorf("what counts says %q", got)
	}
	if got := order(valid(log)); !slices.Equal(got, []string{"before", "block", "why?", "later"}) {
		t.Errorf("the turns ended in the order %q", got)
	}
	if len(f.peers.cancelled) != 1 {
		t.Errorf("%d calls were cancelled, want the one that ran", len(f.peers.cancelled))
	}
}

func TestARollbackUndoesAlsoWhatSteeredTheTurnAndTheFirstTurnOfASession(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	asked := f.waitForAsk(ctx, t, s)
	steer := f.arrive(ctx, t, s, "block", sessionv1.OnActive_ON_ACTIVE_STEER)
	if _, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: asked.CallId, Digest: asked.Digest, Approved: true}); err != nil {
		t.Fatal(err)
	}
	<-f.peers.blocked
	instead := f.arrive(ctx, t, s, "why?", sessionv1.OnActive_ON_ACTIVE_ROLLBACK)
	f.waitForEnd(ctx, t, instead.Name)
	for _, name := range []string{turn.Name, steer.Name} {
		if got := f.get(ctx, t, name); got.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED || got.Error.GetReason() != "ROLLED_BACK" {
			t.Errorf("turn %s ended %v", name, got)
		}
	}
	f.wantConversation(ctx, t, s, `
user: "why?"
assistant: "because"`)
	if ms := f.messages(ctx, t, s); ms[0].Parent != "" {
		t.Errorf("the first message follows %s", ms[0].Parent)
	}
	if got := text(valid(f.log(ctx, t, s))); got != "because" {
		t.Errorf("what counts says %q", got)
	}
}

func TestARollbackOfATurnThatWaitsUndoesItAtOnce(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	steer := f.arrive(ctx, t, s, "mind this", sessionv1.OnActive_ON_ACTIVE_STEER)
	instead := f.arrive(ctx, t, s, "why?", sessionv1.OnActive_ON_ACTIVE_ROLLBACK)
	f.waitForEnd(ctx, t, steer.Name)
	if got := f.get(ctx, t, steer.Name); got.FinalText != "ok" || got.SteeredInto != "" {
		t.Errorf("a message that had not joined ran as %v", got)
	}
	if got := f.get(ctx, t, instead.Name); got.FinalText != "because" {
		t.Errorf("the turn in its place ran as %v", got)
	}
	if got := f.states(ctx, t, s); got != "INTERRUPTED COMPLETE COMPLETE" {
		t.Errorf("the turns ended %s", got)
	}
}

func TestATurnResumesWhatStoppedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	const stopped = `
turns:
  - when: steps
    steps: [{tools: [{name: Bash, input: {}}]}, {text: [done]}]
  - when: long
    steps: [{text: [one], stop_reason: max_tokens}]
  - when: Continue where
    steps: [{text: [two]}]
  - when: fail
    steps: [{error: {status: 400, times: 1}, text: [worked]}]
`
	for _, tc := range []struct{ name, say, first, want string }{
		{"a turn that may make no more steps goes on after its results", "steps", "PARTIAL", `
user: "steps"
assistant: use Bash
user: OK
assistant: "done"`},
		{"a turn whose answer was too long is told to go on", "long", "PARTIAL", `
user: "long"
assistant: "one"
user: "Continue where you stopped."
assistant: "two"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, stopped)
			ctx := t.Context()
			s := f.session(ctx, t)
			if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Resume: true}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NOTHING_TO_RESUME) {
				t.Errorf("in an empty session: %v", err)
			}
			first := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: tc.say, Limits: &sessionv1.TurnLimits{MaxSteps: 1}}, nil)
			if got := finished(t, first).State.String(); got != "TURN_STATE_"+tc.first {
				t.Errorf("the first turn ended %s", got)
			}
			events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Resume: true}, nil)
			if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || !events[0].GetTurnQueued().GetResume() {
				t.Errorf("the turn that resumes ended %v after %v", end, events[0])
			}
			f.wantConversation(ctx, t, s, tc.want)
			if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Resume: true}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NOTHING_TO_RESUME) {
				t.Errorf("after a complete turn: %v", err)
			}
		})
	}
}

func TestATurnResumesAfterAnInterruptAndNotWhileOneIsActive(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Resume: true}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) {
		t.Errorf("while a turn is active: %v", err)
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, turn.Name)
	f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Resume: true}, nil)
	f.wantConversation(ctx, t, s, `
user: "write"
assistant: use Bash, use Write
user: OK, INTERRUPTED
assistant: "written"`)
}

func wantWarning(t *testing.T, events []*sessionv1.Event, reason string) {
	t.Helper()
	if !slices.ContainsFunc(events, func(e *sessionv1.Event) bool { return e.GetWarning().GetReason() == reason }) {
		t.Errorf("no warning says %s: %s", reason, names(events))
	}
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func TestARollbackSaysWhatBecameOfTheFiles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, reason string
		before       func(*peers)
		snapshots    int
	}{
		{"a sandbox that is away for a moment", "FILES_RESTORED", func(p *peers) { p.broken["CreateSnapshot"], p.broken["RestoreSnapshot"] = 1, 1 }, 1},
		{"a sandbox that is away for so long that the log tells of it", "FILES_RESTORED", func(p *peers) { p.broken["RestoreSnapshot"] = 6 }, 1},
		{"no room for another snapshot", "FILES_RESTORED", func(p *peers) { p.full = true; p.states["left"], p.states["over"] = "", "" }, 2},
		{"a snapshot that is lost", "FILES_KEPT", func(p *peers) { p.broken["lost snapshot"] = 1 }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, arrivals)
			ctx := t.Context()
			s := f.session(ctx, t)
			tc.before(f.peers)
			f.create(ctx, t, s, "block")
			<-f.peers.blocked
			events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "why?", OnActive: sessionv1.OnActive_ON_ACTIVE_ROLLBACK}, nil)
			wantWarning(t, events, tc.reason)
			for _, e := range f.log(ctx, t, s) {
				if r := e.GetSessionRewound(); r != nil && r.VoidLastSeq != e.FirstSeq-1 {
					t.Errorf("session.rewound at %d says that up to %d is void", e.FirstSeq, r.VoidLastSeq)
				}
			}
			if len(f.peers.snapshots) != tc.snapshots {
				t.Errorf("snapshots: %v", f.peers.snapshots)
			}
		})
	}
}
