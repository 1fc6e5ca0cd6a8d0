package fairlead_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fairlead "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/clienttest"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// TestAMessageThatJoinsATurn plays a turn t whose message was put into the turn u, which waits for a tool of its client.
func TestAMessageThatJoinsATurn(t *testing.T) {
	s := &script{play: func(n int, p player) error {
		if n == 0 {
			p.say("t", clienttest.Turn(0)[0], &sessionv1.Event{Body: &sessionv1.Event_TurnSteered{TurnSteered: &sessionv1.TurnSteered{Into: "u"}}})
			return status.Error(codes.Unavailable, "the test breaks the stream")
		}
		p.live()
		p.say("u", called("u.1", "where")...)
		p.say("u", ended("u.1"), finished())
		p.say("t", finished())
		return nil
	}}
	var last *sessionv1.Event
	where := fairlead.Tool{Name: "where", Run: func(context.Context, json.RawMessage) (string, error) {
		t.Error("the tool of another turn ran")
		return "", nil
	}}
	end, err := s.client(t, fast).Run(t.Context(), hello(), fairlead.Handlers{Tools: []fairlead.Tool{where}, Event: func(e *sessionv1.Event) { last = e }})
	if err != nil || last.GetTurn() != "t" || end != last.GetTurnFinished() {
		t.Error(err, last, end)
	}
}

func TestWhatWasAskedBeforeARunIsAnswered(t *testing.T) {
	answered := make(chan bool)
	s := &script{resolve: func(*sessionv1.ResolveApprovalRequest) error { close(answered); return nil }, play: func(_ int, p player) error {
		p.say("t", approval("t.1"))
		p.live()
		<-answered
		p.say("t", finished())
		return nil
	}}
	s.play = after(s.play)
	req := hello()
	req.AfterSeq = 1
	var seen []int64
	_, err := s.client(t, fast).Run(t.Context(), req, fairlead.Handlers{
		Event: func(e *sessionv1.Event) { seen = append(seen, e.GetSeq()) },
		Approve: func(context.Context, *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error) {
			return &sessionv1.ResolveApprovalRequest{Approved: true}, nil
		},
	})
	if err != nil || !slices.Equal(seen, []int64{2}) {
		t.Error(err, seen)
	}
}

// after plays a script from its beginning alone.
func after(play func(int, player) error) func(int, player) error {
	return func(n int, p player) error {
		if *p.seq > 0 {
			return status.Error(codes.DeadlineExceeded, "no answer came to the question before")
		}
		return play(n, p)
	}
}

func TestAResultIsText(t *testing.T) {
	s := &script{}
	s.play = func(_ int, p player) error {
		p.say("t", called("t.1", "bytes")...)
		p.live()
		got := (<-s.results).GetContent()[0].GetText().GetText()
		if got != "a\uFFFDb" {
			t.Errorf("%q", got)
		}
		p.say("t", ended("t.1"), finished())
		return nil
	}
	if _, err := s.client(t, fast).Run(t.Context(), hello(), fairlead.Handlers{Tools: []fairlead.Tool{say("bytes", "a\xffb")}}); err != nil {
		t.Error(err)
	}
}

func TestSeveralToolsEachRunOnceOverBreaks(t *testing.T) {
	s := &script{}
	s.play = func(n int, p player) error {
		switch n {
		case 0:
			p.say("t", called("t.1", "one")...)
			p.say("t", called("t.2", "two")...)
			p.live()
			for range 2 {
				<-s.results
			}
			return status.Error(codes.Unavailable, "the test breaks the stream")
		default:
			p.say("t", &sessionv1.Event{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{CallIds: []string{"t.1", "t.2", "t.3"}}}})
			p.live()
			p.say("t", ended("t.1"), ended("t.2"), finished())
			return nil
		}
	}
	_, err := s.client(t, fast).Run(t.Context(), hello(), fairlead.Handlers{Tools: []fairlead.Tool{say("one", "1"), say("two", "2"), {Name: "three"}}})
	if err != nil || len(s.results) > 0 {
		t.Errorf("%v, and %d more results", err, len(s.results))
	}
}

func TestAToolWithoutAFunctionIsAnothers(t *testing.T) {
	s := &script{play: func(_ int, p player) error {
		p.say("t", called("t.1", "where")...)
		p.live()
		p.say("t", clienttest.Text("a"), ended("t.1"), finished())
		return nil
	}}
	if _, err := s.client(t, fast).Run(t.Context(), hello(), fairlead.Handlers{Tools: []fairlead.Tool{{Name: "where"}}}); err != nil {
		t.Error(err)
	}
}

func TestAnAnswerThatComesTooLateIsNoFault(t *testing.T) {
	refused := make(chan bool)
	s := &script{
		resolve: func(*sessionv1.ResolveApprovalRequest) error {
			defer close(refused)
			late, err := status.New(codes.FailedPrecondition, "late").WithDetails(&errdetails.ErrorInfo{Reason: "CALL_NOT_WAITING"})
			if err != nil {
				return err
			}
			return late.Err()
		},
		play: func(_ int, p player) error {
			p.say("t", approval("t.1"))
			p.live()
			<-refused
			<-time.After(20 * time.Millisecond)
			p.say("t", finished())
			return nil
		},
	}
	if _, err := s.client(t, fast).Run(t.Context(), hello(), fairlead.Handlers{
		Approve: func(context.Context, *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error) {
			return &sessionv1.ResolveApprovalRequest{}, nil
		},
	}); err != nil {
		t.Error(err)
	}
}
