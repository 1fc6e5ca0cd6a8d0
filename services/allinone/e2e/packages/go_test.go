package packages

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	fairlead "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/fold"
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
)

// golang returns a client of a server, for a key.
func golang(t *testing.T, address, key string) *fairlead.Client {
	t.Helper()
	c, err := fairlead.Connect(address, fairlead.Config{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func sessionOf(t *testing.T, c *fairlead.Client, agent string) string {
	t.Helper()
	s, err := c.CreateSession(t.Context(), &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "agents/" + agent}})
	if err != nil {
		t.Fatal(err)
	}
	return s.GetName()
}

func TestTheExampleInGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "example")
	in(t, root+"clients/go", "go", "build", "-o", program, "./example")
	s := server{wiretest.Serve(t, configuration(), map[string]commonv1.Role{"ann": commonv1.Role_ROLE_USER})}
	const want = "I write it down.\n[Write is approved]\nWritten, or not.\nTURN_STATE_COMPLETE\n"
	if got := s.run(t, t.TempDir(), []string{"FAIRLEAD_API_KEY=" + s.Keys["ann"]}, program); got != want {
		t.Errorf("it prints\n%s", got)
	}
}

func TestATurnInGo(t *testing.T) {
	s := wiretest.Serve(t, configuration(), map[string]commonv1.Role{"ann": commonv1.Role_ROLE_USER})
	c := golang(t, s.GRPC, s.Keys["ann"])
	helper, coder := sessionOf(t, c, "helper"), sessionOf(t, c, "coder")
	calls := 0
	where := fairlead.Tool{Name: "where", Description: "Where the person is", Schema: `{"type":"object"}`, Run: func(_ context.Context, arguments json.RawMessage) (string, error) {
		calls++
		return "Berlin " + string(arguments), nil
	}}
	lost := where
	lost.Run = func(context.Context, json.RawMessage) (string, error) { return "", errors.New("no idea") }
	approve := func(yes bool) fairlead.Handlers {
		return fairlead.Handlers{Approve: func(context.Context, *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error) {
			return &sessionv1.ResolveApprovalRequest{Approved: yes}, nil
		}}
	}
	for _, x := range []struct {
		name, session, text string
		handlers            fairlead.Handlers
		state               sessionv1.TurnState
		want                string
	}{
		{"a message", helper, "plain", fairlead.Handlers{}, complete, "You said: plain"},
		{"an approval", coder, "hello", approve(true), complete, "Written, or not."},
		{"a refusal", coder, "hello", approve(false), complete, "Written, or not."},
		{"an approval of a subagent", sessionOf(t, c, "lead"), "delegate", approve(true), complete, "The leaf said: Written, or not."},
		{"a tool", helper, "where", fairlead.Handlers{Tools: []fairlead.Tool{where}}, complete, `You are in Berlin {"exact":true}`},
		{"a tool that fails", helper, "where", fairlead.Handlers{Tools: []fairlead.Tool{lost}}, complete, "You are in no idea"},
		{"a question", helper, "question", fairlead.Handlers{Ask: func(_ context.Context, q *sessionv1.QuestionRequested) (*sessionv1.AnswerQuestionRequest, error) {
			choice := q.GetQuestion().GetItems()[0].GetOptions()[1].GetLabel()
			return &sessionv1.AnswerQuestionRequest{Action: commonv1.QuestionAction_QUESTION_ACTION_ACCEPT, ContentJson: `{"answers":{"Which?":"` + choice + `"}}`}, nil
		}}, complete, "You chose: The user answered:\n- Which? B"},
		{"a failure", helper, "fail", fairlead.Handlers{}, sessionv1.TurnState_TURN_STATE_FAILED, ""},
	} {
		var log fold.Log
		x.handlers.Event = func(e *sessionv1.Event) {
			e.FirstSeq, e.Seq = log.Last()+1, log.Last()+1 // a turn's events are not all of a log
			if err := log.Add(e); err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
		}
		end, err := c.Run(t.Context(), &sessionv1.RunTurnRequest{Parent: x.session, Text: x.text}, x.handlers)
		if err != nil || end.GetState() != x.state || end.GetFinalText() != x.want {
			t.Errorf("%s: %v, %v", x.name, end, err)
		}
		if turns := log.State().Turns; len(turns) != 1 || turns[0].Said != x.text || turns[0].Final != x.want {
			t.Errorf("%s: the log has %+v", x.name, turns)
		}
	}
	t.Run("a turn that is run again is the same turn", func(t *testing.T) {
		req := &sessionv1.RunTurnRequest{Parent: helper, Text: "where", RequestId: "one"}
		calls = 0
		for range 3 {
			if end, err := c.Run(t.Context(), req, fairlead.Handlers{Tools: []fairlead.Tool{where}}); err != nil || end.GetState() != complete {
				t.Fatal(end, err)
			}
		}
		if calls != 1 {
			t.Errorf("the tool ran %d times", calls)
		}
	})
	t.Run("the reason of a refusal", func(t *testing.T) {
		_, err := c.Run(t.Context(), &sessionv1.RunTurnRequest{Parent: "sessions/none", Text: "hi"}, fairlead.Handlers{})
		if fairlead.Reason(err) != sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND {
			t.Error(err)
		}
	})
	t.Run("an interrupt", func(t *testing.T) {
		end, err := c.Run(t.Context(), &sessionv1.RunTurnRequest{Parent: helper, Text: "long"}, fairlead.Handlers{Event: func(e *sessionv1.Event) {
			if e.GetStepStarted() != nil {
				if turn, err := c.Interrupt(t.Context(), helper); err != nil || turn != e.GetTurn() {
					t.Error(turn, err)
				}
			}
		}})
		if err != nil || end.GetState() != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
			t.Error(end, err)
		}
	})
	t.Run("a handler that fails", func(t *testing.T) {
		fault := errors.New("no answer")
		_, err := c.Run(t.Context(), &sessionv1.RunTurnRequest{Parent: coder, Text: "hello"}, fairlead.Handlers{
			Approve: func(context.Context, *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error) {
				return nil, fault
			},
		})
		if !errors.Is(err, fault) {
			t.Error(err)
		}
	})
}

const complete = sessionv1.TurnState_TURN_STATE_COMPLETE

func TestAnAnswerOfAnotherClientEndsAHandler(t *testing.T) {
	s := wiretest.Serve(t, configuration(), nil)
	one, other := golang(t, s.GRPC, ""), golang(t, s.GRPC, "")
	coder := sessionOf(t, one, "coder")
	end, err := one.Run(t.Context(), &sessionv1.RunTurnRequest{Parent: coder, Text: "hello"}, fairlead.Handlers{
		Approve: func(ctx context.Context, a *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error) {
			_, err := other.Sessions.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: coder, CallId: a.GetCallId(), Digest: a.GetDigest(), Approved: true})
			if err != nil {
				return nil, err
			}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	if err != nil || end.GetState() != complete {
		t.Error(end, err)
	}
}

func TestGoGoesOnAfterAKill(t *testing.T) {
	s := spawn(t)
	c := golang(t, s.GRPC, "")
	session := sessionOf(t, c, "helper")
	turn, err := c.Sessions.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: session, Text: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	var log fold.Log
	killed := false
	f := c.Follow(t.Context(), session, 0)
	defer f.Close()
	for e := range f.Events() {
		if err := log.Add(e); err != nil {
			t.Fatal(err)
		}
		if !killed && strings.Contains(e.GetTextDelta().GetText(), "three") {
			killed = true
			s.Kill()
			s.Start(t)
		}
		if e.GetTurnFinished() != nil {
			break
		}
	}
	found := log.State().Turn(turn.GetTurn().GetName())
	if found == nil || found.State != complete || len(found.Steps) != 1 || !killed {
		t.Fatalf("%+v, %v", found, f.Err())
	}
	if said, _ := found.Steps[0].Text(); said != "one two three four five six seven eight nine ten" {
		t.Errorf("it says %q", said)
	}
}

// TestATurnIsTakenUpByAnotherProcess ends a client while its turn waits for its tool.
func TestATurnIsTakenUpByAnotherProcess(t *testing.T) {
	s := wiretest.Serve(t, configuration(), nil)
	session := sessionOf(t, golang(t, s.GRPC, ""), "helper")
	req := &sessionv1.RunTurnRequest{Parent: session, Text: "where", RequestId: "once"}
	ctx, leave := context.WithCancel(t.Context())
	tool := fairlead.Tool{Name: "where", Description: "Where the person is", Run: func(ctx context.Context, _ json.RawMessage) (string, error) {
		leave()
		<-ctx.Done()
		return "", ctx.Err()
	}}
	if _, err := golang(t, s.GRPC, "").Run(ctx, req, fairlead.Handlers{Tools: []fairlead.Tool{tool}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	tool.Run = func(context.Context, json.RawMessage) (string, error) { return "Rome", nil }
	end, err := golang(t, s.GRPC, "").Run(t.Context(), req, fairlead.Handlers{Tools: []fairlead.Tool{tool}})
	if err != nil || end.GetFinalText() != "You are in Rome" {
		t.Error(end, err)
	}
}

// TestAMessageThatJoinsATurnInGo puts a message into a turn that waits for a tool of its client.
func TestAMessageThatJoinsATurnInGo(t *testing.T) {
	c := golang(t, wiretest.Serve(t, configuration(), nil).GRPC, "")
	session := sessionOf(t, c, "helper")
	waits, joined := make(chan bool), make(chan bool)
	where := fairlead.Tool{Name: "where", Description: "Where the person is", Run: func(context.Context, json.RawMessage) (string, error) {
		close(waits)
		<-joined
		return "Berlin", nil
	}}
	turns := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), &sessionv1.RunTurnRequest{Parent: session, Text: "where"}, fairlead.Handlers{Tools: []fairlead.Tool{where}})
		turns <- err
	}()
	<-waits
	var own, into string
	req := &sessionv1.RunTurnRequest{Parent: session, Text: "and the weather?", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER}
	end, err := c.Run(t.Context(), req, fairlead.Handlers{Event: func(e *sessionv1.Event) {
		switch {
		case own == "":
			own = e.GetTurn()
			close(joined)
		case e.GetTurnSteered() != nil:
			into = e.GetTurnSteered().GetInto()
		case e.GetTurnFinished() != nil && into != "" && e.GetTurn() == own:
			into += ", ended"
		}
	}})
	if err != nil || end.GetState() != complete || !strings.HasSuffix(into, ", ended") {
		t.Error(end, err, into)
	}
	if err := <-turns; err != nil {
		t.Error(err)
	}
}
