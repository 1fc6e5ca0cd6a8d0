package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// summarizes is the turn that plays when the model is asked for a summary.
const summarizes = `
  - when: earlier part of the conversation
    steps: [{text: ["the gist"], usage: {input_tokens: 30, output_tokens: 3}}]
`

// filler is a text of about 250 tokens.
var filler = strings.Repeat("word ", 200)

// compacted finds what events say about the view that was shortened.
func compacted(events []*sessionv1.Event) (all []*sessionv1.SessionCompacted) {
	for _, e := range events {
		if c := e.GetSessionCompacted(); c != nil {
			all = append(all, c)
		}
	}
	return all
}

func smallContext(c *session.Config) {
	c.CompactAt = 50
	c.Models.Models = map[string]limits{"play:test": {ContextTokens: 2000, MaxOutputTokens: 100}}
}

func TestAConversationThatOutgrowsTheContextIsSummarized(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:`+summarizes+`
  - when: now
    steps: [{text: ["I saw {{ .UserText }}"]}]
  - when: word
    steps: [{text: [noted]}]
`, smallContext)
	ctx := t.Context()
	s := f.session(ctx, t)
	for range 4 {
		if end := finished(t, f.turn(ctx, t, s, filler)); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
			t.Fatalf("the turn ended %v", end)
		}
	}
	events := f.turn(ctx, t, s, "now")
	if end := finished(t, events); end.FinalText != "I saw now" {
		t.Errorf("the turn ended %v", end)
	}
	done := compacted(f.log(ctx, t, s))
	if len(done) != 1 || done[0].Trigger != "automatic" || done[0].Method != "summary" || done[0].TokensAfter >= done[0].TokensBefore || done[0].TokensBefore <= 1000 {
		t.Fatalf("compactions: %v", done)
	}
	path := f.messages(ctx, t, s)
	marked := 0
	for _, m := range path {
		if m.Compaction != nil {
			marked++
			if m.Name != done[0].Message || !strings.HasSuffix(m.Blocks[0].GetContent().GetText().GetText(), "the gist") {
				t.Errorf("the summary is %v", m)
			}
		}
	}
	if len(path) != 11 || marked != 1 {
		t.Errorf("the conversation has %d messages, want all 10 and the summary:\n%.500s", len(path), shape(path))
	}
	resp, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	if err != nil || resp.Session.Usage.GetOutputTokens() < 3+4 {
		t.Errorf("the summary is not counted: %v (%v)", resp.GetSession().GetUsage(), err)
	}
	if strings.Contains(text(f.log(ctx, t, s)), "gist") {
		t.Error("the summary was streamed to people")
	}
}

func TestAFullContextNeverFailsATurn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long word ", 4000) // 10,000 tokens
	for name, tt := range map[string]struct {
		scenario, message string
		methods           string
	}{
		"a summary makes room": {summarizes + `
  - when: use
    steps:
      - tools: [{name: Echo, input: {text: "` + strings.Repeat(filler, 3) + `"}}]
      - tools: [{name: Echo, input: {text: "` + strings.Repeat(filler, 3) + `"}}]
      - text: [through]
  - when: conversation so far
    steps: [{text: [lost]}, {text: [through]}]
`, "use", "summary"},
		"no summary is to be had": {`
  - when: earlier part of the conversation
    steps: [{error: {status: 400}}]
  - when: use
    steps:
      - tools: [{name: Echo, input: {text: "` + strings.Repeat(filler, 3) + `"}}]
      - tools: [{name: Echo, input: {text: "` + strings.Repeat(filler, 3) + `"}}]
      - text: [through]
  - when: left out
    steps: [{text: [lost]}, {text: [through]}]
`, "use", "cut"},
		"one message is longer than the context": {`
  - when: word
    steps: [{text: [through]}]
`, long, "cut cut"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, "\ncontext_tokens: 1500\nturns:"+tt.scenario, withSpec(func(s *agent.Spec) { s.Tools = []string{"Echo"} }))
			ctx := t.Context()
			s := f.session(ctx, t)
			events := f.turn(ctx, t, s, tt.message)
			if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "through" {
				t.Fatalf("the turn ended %v after %s", end, names(events))
			}
			var methods []string
			for _, c := range compacted(events) {
				methods = append(methods, c.Method)
			}
			if got := strings.Join(methods, " "); got != tt.methods {
				t.Errorf("shortened by %q, want %q", got, tt.methods)
			}
			if tt.message == long {
				if got := f.messages(ctx, t, s)[0].Blocks[0].GetContent().GetText().GetText(); got != long {
					t.Errorf("the conversation itself lost something: %d bytes are left", len(got))
				}
			}
		})
	}
}

func TestAContextTooSmallForAnythingIsSaid(t *testing.T) {
	t.Parallel()
	f := start(t, "\ncontext_tokens: 2\nturns: [{steps: [{text: [never]}]}]")
	ctx := t.Context()
	end := finished(t, f.turn(ctx, t, f.session(ctx, t), "a message of more than two tokens"))
	if end.State != sessionv1.TurnState_TURN_STATE_FAILED || end.Error.GetReason() != "CONTEXT_FULL" {
		t.Errorf("the turn ended %v", end)
	}
}

func TestACompactionOnRequestWorksInAnIdleSession(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: (?s)word.*earlier part of the conversation.*Keep above all, as the user asks.*the port number
    steps: [{text: ["port 8080"]}]
  - when: what
    steps: [{text: ["{{ .UserText }}"]}]
  - when: word
    steps: [{text: [noted]}]
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, filler)
	r := &sessionv1.CompactSessionRequest{Name: s, Instructions: "the port number", RequestId: "once"}
	for range 2 {
		if _, err := f.CompactSession(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if end := finished(t, f.turn(ctx, t, s, "what")); end.FinalText != "what" {
		t.Errorf("the turn ended %v", end)
	}
	done := compacted(f.log(ctx, t, s))
	if len(done) != 1 || done[0].Trigger != "requested" || done[0].Method != "summary" {
		t.Errorf("compactions: %v", done)
	}
	// Mostly the turn begins when the summary is done. One that was quicker has it before its
	// first step, and what began it stays in the view.
	path := f.messages(ctx, t, s)
	at := slices.IndexFunc(path, func(m *sessionv1.Message) bool { return m.Compaction != nil })
	switch {
	case len(path) == 5 && at == 2 && path[at].Compaction.KeptFrom == "" && path[at].Turn == "":
	case len(path) == 5 && at == 3 && path[at].Compaction.KeptFrom == path[2].Name:
	default:
		t.Errorf("the conversation is\n%s\n%v", strings.ReplaceAll(shape(path), "word ", ""), path[max(at, 0)].Compaction)
	}
	if _, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: "sessions/nothing-here"}); err == nil {
		t.Error("a session that is not there was compacted")
	}
}

func TestARequestToCompactThatChangesNothingSaysSo(t *testing.T) {
	t.Parallel()
	f := start(t, `fallback: {steps: [{text: [ok]}]}`)
	ctx := t.Context()
	s := f.session(ctx, t)
	if _, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	f.turn(ctx, t, s, "hi") // its first step comes behind it
	for _, e := range f.log(ctx, t, s) {
		switch {
		case e.GetWarning().GetReason() == "NOT_COMPACTED":
			return
		case e.GetStepStarted() != nil:
			t.Fatal("the log does not say it")
		}
	}
}

func TestACompactionOnRequestWorksWhileTheTurnWaits(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:`+summarizes+`
  - when: write
    steps:
      - text: ["`+filler+`"]
        tools: [{name: Read, input: {n: 1}}]
      - tools: [{name: Write, input: {file_path: a}}]
      - text: [written]
  - when: conversation so far
    steps: [{text: [lost]}, {text: [written]}]
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	asked := f.waitFor(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetTurnWaiting() != nil })
	if _, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	f.waitFor(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetSessionCompacted() != nil })
	call := asked.GetTurnWaiting().CallIds[0]
	request := f.waitFor(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetApprovalRequested() != nil }).GetApprovalRequested()
	if _, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: call, Digest: request.Digest, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "written" {
		t.Errorf("the turn ended %v", end)
	}
	want := `assistant: use Write
user: "Summary of the conversation so far:\n\nthe gist"
user: OK
assistant: "written"`
	if got := shape(f.messages(ctx, t, s)); !strings.HasSuffix(got, want) {
		t.Errorf("the conversation is\n%s", got)
	}
}

// waitFor reads the session's log until there is such an event.
func (f *fixture) waitFor(ctx context.Context, t *testing.T, s string, is func(*sessionv1.Event) bool) *sessionv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := r.GetEvent(); e != nil && is(e) {
			return e
		}
	}
}

func TestWhatTheHookPrintsIsKeptInTheSummary(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		scenario, warning string
		hook              string
	}{
		"the hook prints something": {`
  - when: (?s)earlier part of the conversation.*This must be in the summary as well:.result of Bash
    steps: [{text: ["with the hook"]}]`, "", "cat notes"},
		"the hook fails": {`
  - when: (?s)earlier part of the conversation
    steps: [{text: ["with the hook"]}]`, "PRE_COMPACTION", "fail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, "\nturns:"+tt.scenario+"\n  - when: word\n    steps: [{text: [noted]}]\n", withSpec(func(s *agent.Spec) { s.PreCompaction = tt.hook }))
			ctx := t.Context()
			s := f.session(ctx, t)
			f.turn(ctx, t, s, filler)
			if _, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: s}); err != nil {
				t.Fatal(err)
			}
			done := f.waitFor(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetSessionCompacted() != nil }).GetSessionCompacted()
			path := f.messages(ctx, t, s)
			if got := path[len(path)-1].Blocks[0].GetContent().GetText().GetText(); done.Method != "summary" || !strings.HasSuffix(got, "with the hook") {
				t.Errorf("%v: the summary is %q", done, got)
			}
			var warned []string
			for _, e := range f.log(ctx, t, s) {
				if reason := e.GetWarning().GetReason(); reason != "" {
					warned = append(warned, reason)
				}
			}
			if strings.Join(warned, " ") != tt.warning {
				t.Errorf("warned of %q, want %q", warned, tt.warning)
			}
		})
	}
}

func TestAnInterruptStopsTheHookToo(t *testing.T) {
	t.Parallel()
	f := start(t, shortened, shortensAfterTwoSteps, withSpec(func(s *agent.Spec) { s.PreCompaction = "block" }))
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "work")
	var call string
	select {
	case call = <-f.peers.blocked:
	case <-time.After(20 * time.Second):
		t.Fatal("the hook did not begin")
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the turn ended %v", end)
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if !f.peers.cancelled[call] {
		t.Errorf("the hook %s runs on after the turn has ended", call)
	}
}
