package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	client "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/clienttest"
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// approvalTurn asks for an approval.
func approvalTurn() []*sessionv1.Event {
	events := clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE)
	ask := &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{
		CallId: "t1.1.0", Tool: "Bash", ArgumentsJson: `{"command":"rm ` + "\u202e" + `x"}`, Digest: "d1", Rule: "Bash(*)",
	}}}
	return append(events[:2:2], append([]*sessionv1.Event{ask}, events[2:]...)...)
}

// talk is a conversation with the fake server.
func talk(t *testing.T, s *clienttest.Server, out *buffer) *conversation {
	t.Helper()
	conn, err := rpc.Dial(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return &conversation{
		sessions: sessionv1.NewSessionServiceClient(conn), session: clienttest.Session, notices: out,
		view: terminal.NewRenderer(out, terminal.Options{}), backoff: client.DefaultBackoff(),
	}
}

func TestAPersonIsAskedForApprovals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []string
		want  bool
	}{
		{"y approves", []string{"y"}, true},
		{"n refuses", []string{"n"}, false},
		{"n and a reason refuses with the reason", []string{"n use another"}, false},
		{"anything else is asked again", []string{"maybe", "", "Yes"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := (&clienttest.Server{Events: approvalTurn(), Hold: 4}).Start(t)
			var out buffer
			answers := make(chan string)
			defer close(answers)
			conv := talk(t, s, &out)
			conv.answers = answers
			done := make(chan error, 1)
			go func() {
				_, err := conv.turn(t.Context(), &sessionv1.RunTurnRequest{Parent: clienttest.Session, Text: "hi"})
				done <- err
			}()
			for _, line := range c.lines {
				for !strings.Contains(out.String(), "[y/n]") { // an answer before the question would be none
					select {
					case err := <-done:
						t.Fatalf("ended: %v", err)
					case <-time.After(time.Millisecond):
					}
				}
				answers <- line
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			requests := s.Requests()
			r, ok := requests[len(requests)-1].(*sessionv1.ResolveApprovalRequest)
			if !ok || r.GetApproved() != c.want || r.GetDigest() != "d1" || r.GetCallId() != "t1.1.0" ||
				(r.GetComment() == "use another") != strings.HasSuffix(c.lines[0], "another") {
				t.Errorf("answered %v", requests[len(requests)-1])
			}
			if !strings.Contains(out.String(), `rm \u202ex`) {
				t.Errorf("the question does not show exactly what is asked:\n%s", out.String())
			}
		})
	}
}

func TestWithoutAPersonTheWayToApproveIsSaid(t *testing.T) {
	t.Parallel()
	s := (&clienttest.Server{Events: approvalTurn(), Hold: 4}).Start(t)
	var out buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conv := talk(t, s, &out)
	done := make(chan error, 1)
	go func() {
		_, err := conv.turn(ctx, &sessionv1.RunTurnRequest{Parent: clienttest.Session, Text: "hi"})
		done <- err
	}()
	for !strings.Contains(out.String(), "fairlead approve t1.1.0\n") {
		select {
		case err := <-done:
			t.Fatalf("ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	s.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestASecondInterruptQuits(t *testing.T) {
	t.Parallel()
	s := (&clienttest.Server{Events: clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE), Hold: 1, Deaf: true}).Start(t)
	var out buffer
	interrupts := make(chan struct{}, 2)
	interrupts <- struct{}{}
	interrupts <- struct{}{}
	conv := talk(t, s, &out)
	conv.interrupts = interrupts
	end, err := conv.turn(t.Context(), &sessionv1.RunTurnRequest{Parent: clienttest.Session, Text: "hi"})
	if !errors.Is(err, errQuit) {
		t.Errorf("ended %v, error %v", end, err)
	}
}

func TestATurnThatNobodyCanApproveIsStopped(t *testing.T) {
	t.Parallel()
	s := (&clienttest.Server{Events: approvalTurn(), Hold: 4}).Start(t)
	var out buffer
	conv := talk(t, s, &out)
	conv.alone = true
	if _, err := conv.turn(t.Context(), &sessionv1.RunTurnRequest{Parent: clienttest.Session, Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	requests := s.Requests()
	if _, ok := requests[len(requests)-1].(*sessionv1.InterruptSessionRequest); !ok || !strings.Contains(out.String(), "no terminal to ask in") {
		t.Errorf("asked for %v\n%s", requests[len(requests)-1], out.String())
	}
}

func TestALineIsAnAnswer(t *testing.T) {
	t.Parallel()
	session, always := commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION, commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS
	for line, want := range map[string]*sessionv1.ResolveApprovalRequest{
		"y": {Approved: true}, " YES ": {Approved: true}, "s": {Approved: true, Scope: session}, "a": {Approved: true, Scope: always},
		"n": {}, "no  not that one ": {Comment: "not that one"}, "": nil, "maybe": nil, "y but quickly": nil, "always": nil,
	} {
		if d := cmp.Diff(want, approvalOf(line), protocmp.Transform()); d != "" {
			t.Errorf("%q: %s", line, d)
		}
	}
}

func TestAPersonAnswersTheQuestionsOfATurn(t *testing.T) {
	t.Parallel()
	events := clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE)
	asked := &sessionv1.Event{Body: &sessionv1.Event_QuestionRequested{QuestionRequested: &sessionv1.QuestionRequested{
		CallId: "t1.1.0", Tool: "AskUserQuestion", Question: &commonv1.Question{Id: "q1", Items: []*commonv1.QuestionItem{
			{Question: "Which?", Header: "First", Options: []*commonv1.QuestionOption{{Label: "A"}, {Label: "B"}}},
			{Question: "And?", Header: "Second", Multiple: true, Options: []*commonv1.QuestionOption{{Label: "C"}, {Label: "D"}}},
		}},
	}}}
	for name, c := range map[string]struct {
		lines []string
		want  *sessionv1.AnswerQuestionRequest
	}{
		"numbers": {[]string{"2", "1, d"}, &sessionv1.AnswerQuestionRequest{Action: accepted, ContentJson: `{"answers":{"And?":["C","D"],"Which?":"B"}}`}},
		"text":    {[]string{"", "something", "else"}, &sessionv1.AnswerQuestionRequest{Action: accepted, ContentJson: `{"answers":{"And?":["else"],"Which?":"something"}}`}},
		"nothing": {[]string{"1", "/decline"}, &sessionv1.AnswerQuestionRequest{Action: declined}},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&clienttest.Server{Events: append(events[:2:2], append([]*sessionv1.Event{asked}, events[2:]...)...), Hold: 4}).Start(t)
			var out buffer
			answers := make(chan string)
			defer close(answers)
			conv := talk(t, s, &out)
			conv.answers = answers
			done := make(chan error, 1)
			go func() {
				_, err := conv.turn(t.Context(), &sessionv1.RunTurnRequest{Parent: clienttest.Session, Text: "hi"})
				done <- err
			}()
			for i, line := range c.lines {
				for strings.Count(out.String(), "/decline) ") != i+1 {
					select {
					case err := <-done:
						t.Fatalf("ended: %v", err)
					case <-time.After(time.Millisecond):
					}
				}
				answers <- line
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			requests := s.Requests()
			got, _ := requests[len(requests)-1].(*sessionv1.AnswerQuestionRequest)
			c.want.Parent, c.want.CallId, c.want.QuestionId, c.want.RequestId = clienttest.Session, "t1.1.0", "q1", got.GetRequestId()
			if d := cmp.Diff(c.want, got, protocmp.Transform()); d != "" {
				t.Error(d)
			}
		})
	}
}
