package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
)

const hello = `
turns:
  - when: hello
    steps: [{text: ["Hi", " there"], usage: {input_tokens: 10, output_tokens: 2}}]
  - when: tools
    steps:
      - thinking: [Hm]
        text: [Looking]
        tools: [{name: Bash, input: {command: ls}}, {name: Read, input: {file_path: a}}, {name: Read, input: {file_path: b}}]
      - text: [Done]
  - when: fail
    steps: [{tools: [{name: Bash, input: {command: fail}}, {name: Bash, input: {command: ls}}, {name: Bash, input: {command: fail}}]}, {text: [Done]}]
  - when: remember
    turn: 2
    steps: [{text: [the second turn]}]
fallback: {steps: [{text: [what]}]}
`

func TestATurnStreamsTextAndEndsComplete(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "hello")
	want := "turn.queued turn.started step.started text.started text.delta text.finished step.finished turn.finished"
	if got := names(events); got != want {
		t.Errorf("events are\n%s, want\n%s", got, want)
	}
	end := finished(t, events)
	if end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "Hi there" || end.Steps != 1 {
		t.Errorf("the turn ended %v", end)
	}
	if end.Usage.GetInputTokens() != 10 || end.Usage.GetOutputTokens() != 2 {
		t.Errorf("usage is %v", end.Usage)
	}
	resp, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Session; got.ActiveTurn != "" || got.FinishedTurns != 1 || got.Usage.GetOutputTokens() != 2 {
		t.Errorf("the session is %v", got)
	}
	f.log(ctx, t, s)
}

// The end of a turn says what the turn and the session so far took, also after another replica has taken the session over.
func TestTheEndOfATurnHasTheTotalsOfItsSession(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, hello), t.Context()
	s := f.session(ctx, t)
	for n := int32(1); n <= 3; n++ {
		end := finished(t, f.turn(ctx, t, s, "hello"))
		if end.SessionTurns != n || end.SessionUsage.GetInputTokens() != int64(n)*10 || end.SessionUsage.GetOutputTokens() != int64(n)*2 {
			t.Errorf("turn %d: the session has %d turns and used %v", n, end.SessionTurns, end.SessionUsage)
		}
		if end.Model != "play:test" || end.DurationMs < 0 || end.DurationMs > time.Minute.Milliseconds() || end.ToolErrors != 0 {
			t.Errorf("turn %d took %d ms with %s, and has %d errors", n, end.DurationMs, end.Model, end.ToolErrors)
		}
		f.restart(t)
	}
	got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	if failing := finished(t, f.turn(ctx, t, f.session(ctx, t), "fail")); failing.ToolErrors != 2 {
		t.Errorf("two of three calls fail, told is %d", failing.ToolErrors)
	}
	last := finished(t, f.turn(ctx, t, s, "hello"))
	if last.SessionTurns != got.Session.FinishedTurns+1 || last.SessionUsage.InputTokens != got.Session.Usage.InputTokens+10 {
		t.Errorf("the session had %v, and then %v", got.Session.Usage, last.SessionUsage)
	}
}

func TestToolCallsRunAndTheirResultsReachTheModel(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "tools please")
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "Done" || end.Steps != 2 {
		t.Fatalf("the turn ended %v", end)
	}
	want := `user: "tools please"
assistant: thinking, "Looking", use Bash, use Read, use Read
user: OK, OK, OK
assistant: "Done"`
	if got := shape(f.messages(ctx, t, s)); got != want {
		t.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
	for id, n := range f.peers.executed {
		if n != 1 {
			t.Errorf("call %s was executed %d times", id, n)
		}
	}
	for id, who := range f.peers.users {
		if who != "default/default" {
			t.Errorf("call %s was made by %s", id, who)
		}
	}
	if got := text(events); got != "LookingDone" {
		t.Errorf("text is %q", got)
	}
}

func TestRepeatingARequestReAttachesAndNeverRunsAgain(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	r := &sessionv1.RunTurnRequest{Parent: s, Text: "hello", RequestId: "once"}
	first := f.runTurn(ctx, t, r, nil)
	r.AfterSeq = first[2].Seq
	second := f.runTurn(ctx, t, r, nil)
	if got, want := names(second), names(first[3:]); got != want {
		t.Errorf("the second time brought\n%s, want\n%s", got, want)
	}
	r.AfterSeq = first[len(first)-1].Seq
	if third := f.runTurn(ctx, t, r, nil); len(third) != 0 {
		t.Errorf("after the end there came %s", names(third))
	}
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: s})
	if err != nil || len(turns.Turns) != 1 {
		t.Errorf("there are %d turns (%v), want 1", len(turns.GetTurns()), err)
	}
	for id, want := range map[string]int{"once": 1, "never": 0} {
		found, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: s, OfRequest: id})
		if err != nil || len(found.Turns) != want || want == 1 && found.Turns[0].Name != turns.Turns[0].Name {
			t.Errorf("the turns of the request %q: %v (%v)", id, found, err)
		}
	}
	r.Text = "something else"
	stream, err := f.RunTurn(ctx, r)
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.AlreadyExists || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED) {
		t.Errorf("another body under the same id: %v", err)
	}
}

const slow = `
turns:
  - when: slow
    steps: [{text: [one, " two", " three"], repeat: 2000, delay: 20ms}]
  - when: block
    steps: [{text: [Wait], tools: [{name: Block, input: {}}, {name: Block, input: {}}]}, {text: [never]}]
fallback: {steps: [{text: [ok]}]}
`

func TestMessagesDuringATurnQueueRejectOrInterrupt(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "block"}); err != nil {
		t.Fatal(err)
	}
	<-f.peers.blocked
	_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "x", OnActive: sessionv1.OnActive_ON_ACTIVE_REJECT})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) || status.Code(err) != codes.FailedPrecondition {
		t.Errorf("REJECT: %v", err)
	}
	queued, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "queued"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: s}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_ACTIVE) {
		t.Errorf("delete during a turn: %v", err)
	}
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "urgent", OnActive: sessionv1.OnActive_ON_ACTIVE_INTERRUPT}, nil)
	if end := finished(t, events); end.FinalText != "ok" {
		t.Errorf("the last turn ended %v", end)
	}
	f.waitForEnd(ctx, t, queued.Turn.Name)
	if got := order(f.log(ctx, t, s)); !slices.Equal(got, []string{"block", "urgent", "queued"}) {
		t.Errorf("the turns ran in the order %q, want the one that interrupts next", got)
	}
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, turn := range turns.Turns {
		states = append(states, strings.TrimPrefix(turn.State.String(), "TURN_STATE_"))
	}
	if got := strings.Join(states, " "); got != "INTERRUPTED COMPLETE COMPLETE" {
		t.Errorf("the turns ended %s", got)
	}
	f.log(ctx, t, s)
}

const asking = `
turns:
  - when: write
    steps: [{tools: [{name: Bash, input: {command: x}}, {name: Write, input: {file_path: a}}]}, {text: [written]}]
  - when: client
    steps: [{tools: [{name: where, input: {}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: ask me
    steps:
      - tools: [{name: AskUserQuestion, input: {questions: [{question: "Which?", header: H, options: [{label: A, description: a}, {label: B, description: b}]}]}}]
      - text: ["{{ .LastToolResult }}"]
  - when: elicit
    steps: [{tools: [{name: Elicit, input: {}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: todo
    steps: [{tools: [{name: TodoWrite, input: {todos: [{content: a, status: pending, activeForm: doing a}]}}]}, {text: [listed]}]
fallback: {steps: [{text: [ok]}]}
`

func TestATurnWaitsForAnApprovalAlsoAcrossARestart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		approved bool
		restart  bool
		want     string
	}{
		{"approved", true, false, "OK, OK"},
		{"refused", false, false, "OK, REFUSED"},
		{"approved after a restart", true, true, "OK, OK"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, asking)
			ctx := t.Context()
			s := f.session(ctx, t)
			created, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "write"})
			if err != nil {
				t.Fatal(err)
			}
			ask := f.waitForAsk(ctx, t, s)
			if tc.restart {
				f.restart(t)
			}
			answer := &sessionv1.ResolveApprovalRequest{Parent: s, CallId: ask.CallId, Digest: "wrong", Approved: tc.approved}
			if _, err := f.ResolveApproval(ctx, answer); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_DIGEST_MISMATCH) {
				t.Errorf("a wrong digest: %v", err)
			}
			answer.Digest, answer.RequestId = ask.Digest, ""
			if _, err := f.ResolveApproval(ctx, answer); err != nil {
				t.Fatal(err)
			}
			f.waitForEnd(ctx, t, created.Turn.Name)
			ms := f.messages(ctx, t, s)
			if got := shape(ms[2:3]); got != "user: "+tc.want {
				t.Errorf("the results are %q, want %s", got, tc.want)
			}
			answer.RequestId, answer.Approved = "", !tc.approved
			if _, err := f.ResolveApproval(ctx, answer); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) {
				t.Errorf("a second answer: %v", err)
			}
			f.log(ctx, t, s)
		})
	}
}

func (f *fixture) waitForAsk(ctx context.Context, t *testing.T, s string) *sessionv1.ApprovalRequested {
	t.Helper()
	var ask *sessionv1.ApprovalRequested
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool {
		if a := e.GetApprovalRequested(); a != nil {
			ask = a
		}
		return e.GetTurnWaiting() != nil
	})
	return ask
}

func (f *fixture) waitForEnd(ctx context.Context, t *testing.T, turn string) *sessionv1.TurnFinished {
	t.Helper()
	session, _, _ := strings.Cut(turn, "/turns/")
	var end *sessionv1.TurnFinished
	f.followUntil(ctx, t, session, func(e *sessionv1.Event) bool {
		if e.Turn == turn && e.GetTurnFinished() != nil {
			end = e.GetTurnFinished()
		}
		return end != nil
	})
	return end
}

func (f *fixture) followUntil(ctx context.Context, t *testing.T, s string, done func(*sessionv1.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	var seen []*sessionv1.Event
	for {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %s: %v", names(seen), err)
		}
		if e := resp.GetEvent(); e != nil {
			seen = append(seen, e)
			if done(e) {
				return
			}
		}
	}
}

func TestAClientRunsItsOwnTool(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	s := f.session(ctx, t)
	created, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "client", ClientTools: []*sessionv1.ClientTool{{Name: "where"}}})
	if err != nil {
		t.Fatal(err)
	}
	var call string
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool {
		if w := e.GetTurnWaiting(); w != nil {
			call = w.CallIds[0]
		}
		return call != ""
	})
	result := &sessionv1.SubmitToolResultRequest{Parent: s, CallId: call, Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: "at the quay"}}}}}
	if _, err := f.SubmitToolResult(ctx, result); err != nil {
		t.Fatal(err)
	}
	if end := f.waitForEnd(ctx, t, created.Turn.Name); end.FinalText != "at the quay" {
		t.Errorf("the turn ended %v", end)
	}
	_, err = f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "x", ClientTools: []*sessionv1.ClientTool{{Name: "Bash"}}})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TOOL_NAME_TAKEN) {
		t.Errorf("a tool with a name that is taken: %v", err)
	}
}

func TestTheListOfThingsToDoIsTheSessionsOwn(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "todo")
	if end := finished(t, events); end.FinalText != "listed" {
		t.Errorf("the turn ended %v", end)
	}
	if !strings.Contains(names(events), "todo.updated") {
		t.Errorf("no todo.updated in %s", names(events))
	}
	if len(f.peers.results) != 1 {
		t.Errorf("%d results were reported to tools, want 1", len(f.peers.results))
	}
}

const failing = `
turns:
  - when: retry
    steps: [{text: [Hi, " all"], error: {status: 529, midway: 1, times: 2, retry_after: 10ms}}]
  - when: key
    steps: [{error: {status: 401, message: the key was refused}}]
  - when: broken
    steps: [{tools: [{name: Broken, input: {}}]}, {text: [fine]}]
  - when: loop
    steps: [{tools: [{name: Bash, input: {}}]}, {tools: [{name: Bash, input: {}}]}, {tools: [{name: Bash, input: {}}]}, {text: [end]}]
  - when: endless
    steps: [{text: ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"], repeat: 100000}]
  - when: slow
    steps: [{text: [a], repeat: 10000, delay: 20ms}]
fallback: {steps: [{text: [ok]}]}
`

func TestAnAnswerThatBreaksMidwayRestartsTheStep(t *testing.T) {
	t.Parallel()
	f := start(t, failing)
	ctx := t.Context()
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "retry")
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "Hi all" {
		t.Errorf("the turn ended %v", end)
	}
	var kept strings.Builder
	void := map[int64]bool{}
	for _, e := range events {
		if r := e.GetStepRestarted(); r != nil {
			for n := r.VoidFirstSeq; n <= r.VoidLastSeq; n++ {
				void[n] = true
			}
		}
	}
	for _, e := range events {
		if !void[e.Seq] {
			kept.WriteString(e.GetTextDelta().GetText())
		}
	}
	if kept.String() != "Hi all" || !strings.Contains(names(events), "warning step.restarted") {
		t.Errorf("what is not void says %q in %s", kept.String(), names(events))
	}
}

func TestHowTurnsFailAndStopAtLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		text   string
		limits *sessionv1.TurnLimits
		state  sessionv1.TurnState
		reason string
	}{
		{"a refused key is a clear failure", "key", nil, sessionv1.TurnState_TURN_STATE_FAILED, "MODEL_AUTHENTICATION"},
		{"steps run out", "loop", &sessionv1.TurnLimits{MaxSteps: 2}, sessionv1.TurnState_TURN_STATE_PARTIAL, "MAX_STEPS"},
		{"output without end is cut", "endless", &sessionv1.TurnLimits{MaxOutputTokens: 100}, sessionv1.TurnState_TURN_STATE_PARTIAL, "MAX_OUTPUT_TOKENS"},
		{"time runs out", "slow", &sessionv1.TurnLimits{MaxWallTime: durationpb.New(300 * time.Millisecond)}, sessionv1.TurnState_TURN_STATE_PARTIAL, "MAX_WALL_TIME"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, failing)
			ctx := t.Context()
			s := f.session(ctx, t)
			events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: tc.text, Limits: tc.limits}, nil)
			end := finished(t, events)
			if end.State != tc.state || end.Error.GetReason() != tc.reason || end.Error.GetMessage() == "" {
				t.Errorf("the turn ended %v %v", end.State, end.Error)
			}
			if end := finished(t, f.turn(ctx, t, s, "again")); end.FinalText != "ok" {
				t.Errorf("the turn after it ended %v", end)
			}
			f.log(ctx, t, s)
		})
	}
}

func TestACallSurvivesThatToolsIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	f := start(t, failing)
	ctx := t.Context()
	f.peers.broken["Broken"] = 2
	s := f.session(ctx, t)
	events := f.turn(ctx, t, s, "broken")
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
	if len(f.peers.executed) != 1 {
		t.Errorf("the calls that were executed are %v, want one", f.peers.executed)
	}
	for id, n := range f.peers.executed {
		if n != 1 {
			t.Errorf("call %s was executed %d times", id, n)
		}
	}
}

func TestATurnSurvivesThatThePeersAreAwayBeforeItsCalls(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"ListTools", "EnsureWorkspace"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := start(t, failing)
			f.peers.broken[method] = 1
			events := f.turn(t.Context(), t, f.session(t.Context(), t), "broken")
			if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || f.peers.broken[method] != 0 {
				t.Errorf("the turn ended %v", end)
			}
		})
	}
}

func TestALimitAboveTheCeilingIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, hello, func(c *session.Config) { c.CeilingSteps = 100 })
	ctx := t.Context()
	s := f.session(ctx, t)
	_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "hello", Limits: &sessionv1.TurnLimits{MaxSteps: 101}})
	if status.Code(err) != codes.InvalidArgument || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING) {
		t.Errorf("got %v", err)
	}
}

func TestTenantsNeverSeeEachOther(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	a := principal.With(t.Context(), principal.Principal{Tenant: "a", User: "ann", Role: principal.RoleOperator})
	b := principal.With(t.Context(), principal.Principal{Tenant: "b", User: "bob", Role: principal.RoleOperator})
	for _, ctx := range []context.Context{a, b} {
		if _, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "same", RequestId: "same"}); err != nil {
			t.Fatal(err)
		}
	}
	f.turn(a, t, "sessions/same", "tools please")
	if got := len(f.messages(a, t, "sessions/same")); got != 4 {
		t.Errorf("a has %d messages, want 4", got)
	}
	if got := len(f.messages(b, t, "sessions/same")); got != 0 {
		t.Errorf("b sees %d messages of a", got)
	}
	for id, who := range f.peers.users {
		if who != "a/ann" {
			t.Errorf("call %s was made in the name of %s", id, who)
		}
	}
	if _, err := f.CreateSession(a, &sessionv1.CreateSessionRequest{SessionId: "only-a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.GetSession(b, &sessionv1.GetSessionRequest{Name: "sessions/only-a"}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("b asks for a's session: %v", err)
	}
}
