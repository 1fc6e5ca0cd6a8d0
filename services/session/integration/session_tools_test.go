package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func (f *fixture) tools() sessionv1.SessionToolServiceClient {
	return sessionv1.NewSessionToolServiceClient(f.conn)
}

// callTool makes a call and returns what its stream showed.
func (f *fixture) callTool(ctx context.Context, r *sessionv1.CallToolRequest, see func(*sessionv1.Event)) ([]*sessionv1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stream, err := f.tools().CallTool(ctx, r)
	if err != nil {
		return nil, err
	}
	var events []*sessionv1.Event
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		if e := resp.GetEvent(); e != nil {
			events = append(events, e)
			if see != nil {
				see(e)
			}
		}
	}
}

func callResult(events []*sessionv1.Event) string {
	if len(events) == 0 {
		return "nothing"
	}
	end := events[len(events)-1].GetTurnFinished()
	var text strings.Builder
	for _, c := range end.GetCallResult().GetContent() {
		text.WriteString(c.GetText().GetText())
	}
	return strings.TrimPrefix(end.GetState().String(), "TURN_STATE_") + " " + strings.TrimPrefix(end.GetCallResult().GetOutcome().String(), "TOOL_OUTCOME_") + ": " + text.String()
}

func TestACallWithoutTheModelIsATurnWithoutAMessage(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "hello")
	before := shape(f.messages(ctx, t, s))
	events, err := f.callTool(ctx, &sessionv1.CallToolRequest{Parent: s, Tool: "Bash", ArgumentsJson: `{"command":"ls"}`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(events), "turn.queued turn.started tool_call.started tool_call.arguments workspace.created checkpoint.created tool_call.decision tool_call.output_delta tool_call.finished turn.finished"; got != want {
		t.Errorf("the events are\n%s, want\n%s", got, want)
	}
	if got := callResult(events); got != "COMPLETE OK: result of Bash" {
		t.Errorf("the result is %q", got)
	}
	call := events[0].GetTurnQueued().GetCall()
	if call.GetTool() != "Bash" || call.ArgumentsJson != `{"command":"ls"}` || f.peers.executed[call.CallId] != 1 {
		t.Errorf("turn.queued has %v", call)
	}
	if after := shape(f.messages(ctx, t, s)); after != before {
		t.Errorf("the conversation was\n%s\nand is\n%s", before, after)
	}
	got, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: events[0].Turn})
	if err != nil || got.Turn.Steps != 0 || got.Turn.Model != "" || !proto.Equal(got.Turn.Call, call) || !proto.Equal(got.Turn.CallResult, events[len(events)-1].GetTurnFinished().CallResult) {
		t.Errorf("the turn is %v, %v", got, err)
	}
	if end := finished(t, f.turn(ctx, t, s, "hello")); end.State != complete {
		t.Errorf("the next message ended %v", end)
	}
	f.log(ctx, t, s)
}

func TestACallWithTheRequestIDOfAnotherIsTheSame(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	r := &sessionv1.CallToolRequest{Parent: s, Tool: "Bash", ArgumentsJson: `{"command":"ls"}`, RequestId: "r"}
	first, err := f.callTool(ctx, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := proto.CloneOf(r)
	again.AfterSeq = first[2].Seq // it read so far, and was cut off
	second, err := f.callTool(ctx, again, nil)
	if err != nil || len(second) != len(first)-3 || !proto.Equal(second[len(second)-1], first[len(first)-1]) {
		t.Errorf("again: %s, %v; first it was %s", names(second), err, names(first))
	}
	if len(f.peers.executed) != 1 {
		t.Errorf("%d calls were made", len(f.peers.executed))
	}
	other := proto.CloneOf(r)
	other.ArgumentsJson = `{"command":"pwd"}`
	if _, err := f.callTool(ctx, other, nil); status.Code(err) != codes.AlreadyExists || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED) {
		t.Errorf("another call under the same id: %v", err)
	}
}

func TestACallThatAPersonMustAllow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(*fixture, string, *sessionv1.ApprovalRequested) error
		want   string
	}{
		"allowed": {func(f *fixture, s string, a *sessionv1.ApprovalRequested) error {
			_, err := f.ResolveApproval(t.Context(), &sessionv1.ResolveApprovalRequest{Parent: s, CallId: a.CallId, Digest: a.Digest, Approved: true})
			return err
		}, "COMPLETE OK: result of Write"},
		"refused": {func(f *fixture, s string, a *sessionv1.ApprovalRequested) error {
			_, err := f.ResolveApproval(t.Context(), &sessionv1.ResolveApprovalRequest{Parent: s, CallId: a.CallId, Digest: a.Digest, Comment: "no"})
			return err
		}, "COMPLETE REFUSED: no"},
		"interrupted": {func(f *fixture, s string, _ *sessionv1.ApprovalRequested) error {
			_, err := f.InterruptSession(t.Context(), &sessionv1.InterruptSessionRequest{Name: s})
			return err
		}, "INTERRUPTED INTERRUPTED: The turn was stopped before the call was made. It waited for a person's approval: it never started and did nothing."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, hello)
			s := f.session(t.Context(), t)
			events, err := f.callTool(t.Context(), &sessionv1.CallToolRequest{Parent: s, Tool: "Write"}, func(e *sessionv1.Event) {
				if e.GetTurnWaiting() == nil {
					return
				}
				if err := c.answer(f, s, f.waitForAsk(t.Context(), t, s)); err != nil {
					t.Error(err)
				}
			})
			if got := callResult(events); err != nil || got != c.want {
				t.Errorf("the result is %q, %v\n%s", got, err, names(events))
			}
			if end := finished(t, f.turn(t.Context(), t, s, "hello")); end.State != complete {
				t.Errorf("the next message ended %v", end)
			}
		})
	}
}

func TestWhatEndsACallEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request *sessionv1.CallToolRequest
		running func(*fixture, string) error
		want    string
	}{
		"an interrupt": {&sessionv1.CallToolRequest{Tool: "Block"}, func(f *fixture, s string) error {
			_, err := f.InterruptSession(t.Context(), &sessionv1.InterruptSessionRequest{Name: s})
			return err
		}, "INTERRUPTED INTERRUPTED: "},
		"a rollback": {&sessionv1.CallToolRequest{Tool: "Block"}, func(f *fixture, s string) error {
			_, err := f.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: s, Text: "hello", OnActive: sessionv1.OnActive_ON_ACTIVE_ROLLBACK})
			return err
		}, "INTERRUPTED INTERRUPTED: "},
		"its time": {&sessionv1.CallToolRequest{Tool: "Block", Limits: &sessionv1.TurnLimits{MaxWallTime: durationpb.New(300 * time.Millisecond)}},
			func(*fixture, string) error { return nil }, "PARTIAL INTERRUPTED: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, hello)
			s := f.session(t.Context(), t)
			c.request.Parent = s
			events, err := f.callTool(t.Context(), c.request, func(e *sessionv1.Event) {
				if e.GetToolCallDecision() != nil {
					<-f.peers.blocked
					if err := c.running(f, s); err != nil {
						t.Error(err)
					}
				}
			})
			if got := callResult(events); err != nil || !strings.HasPrefix(got, c.want) {
				t.Errorf("the result is %q, %v\n%s", got, err, names(events))
			}
			if end := finished(t, f.turn(t.Context(), t, s, "hello")); end.State != complete {
				t.Errorf("the next message ended %v", end)
			}
			f.log(t.Context(), t, s)
		})
	}
}

func TestACallDuringATurnWaitsForIt(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "block")
	<-f.peers.blocked
	r := &sessionv1.CallToolRequest{Parent: s, Tool: "Read", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER, RequestId: "r"}
	stream, err := f.tools().CallTool(ctx, r)
	if err == nil {
		_, err = stream.Header() // it is accepted
	}
	if err != nil {
		t.Fatal(err)
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	queued, err := f.callTool(ctx, r, nil)
	if got := callResult(queued); err != nil || got != "COMPLETE OK: result of Read" {
		t.Errorf("the result is %q, %v", got, err)
	}
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the turn ended %v", end)
	}
	_, err = f.callTool(ctx, &sessionv1.CallToolRequest{Parent: s, Tool: "Read", OnActive: sessionv1.OnActive_ON_ACTIVE_REJECT}, nil)
	if err != nil {
		t.Errorf("nothing was active: %v", err)
	}
	// A call is nothing that a turn could go on from: the turn before it is.
	if end := finished(t, f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Resume: true}, nil)); end.State != complete {
		t.Errorf("the resumed turn ended %v", end)
	}
	_, err = f.callTool(ctx, &sessionv1.CallToolRequest{Parent: "sessions/none", Tool: "Read"}, nil)
	if status.Code(err) != codes.NotFound {
		t.Errorf("a session that does not exist: %v", err)
	}
}

func TestTheToolsOfASessionAreItsAgents(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	s := f.session(t.Context(), t)
	var got []string
	for token := ""; ; {
		page, err := f.tools().ListSessionTools(t.Context(), &sessionv1.ListSessionToolsRequest{Parent: s, PageSize: 3, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.Tools {
			got = append(got, strings.TrimPrefix(tool.Name, "tools/"))
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if want := "[AskUserQuestion Background Bash Block Broken Elicit Read TodoWrite Write]"; fmt.Sprint(got) != want {
		t.Errorf("the tools are %v, want %s", got, want)
	}
	bob := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "bob", Role: principal.RoleUser})
	if _, err := f.tools().ListSessionTools(bob, &sessionv1.ListSessionToolsRequest{Parent: s}); status.Code(err) != codes.NotFound {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := f.callTool(bob, &sessionv1.CallToolRequest{Parent: s, Tool: "Read"}, nil); status.Code(err) != codes.NotFound {
		t.Errorf("a call of another tenant: %v", err)
	}
}

// call sends a call and leaves: the stream of whichever replica is alive shows its end.
func (c *cluster) call(ctx context.Context, tool string) error {
	return c.ask(ctx, "call "+tool, func(f *fixture) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := f.tools().CallTool(ctx, &sessionv1.CallToolRequest{Parent: c.session, Tool: tool, RequestId: "call-" + tool})
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	})
}

// ownCalls are calls without the model.
var ownCalls = []recovery{
	{name: "a call without the model", scenario: hello,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.call(ctx, "Bash"), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(1), looks(conversation, ""), ends(log, complete), calledOnce(log, "COMPLETE OK: result of Bash"))
		}},
	{name: "a call without the model that asks a person", scenario: hello,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.call(ctx, "Write"), c.approve(ctx), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			return errors.Join(c.executed(1), ends(log, complete), calledOnce(log, "COMPLETE OK: result of Write"))
		}},
	{name: "an interrupt of a call without the model", scenario: hello,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.call(ctx, "Block"), c.interruptCall(ctx), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			return errors.Join(c.executedOnce(), ends(log, sessionv1.TurnState_TURN_STATE_INTERRUPTED))
		}},
}

// calledOnce checks that the log tells of one call, once.
func calledOnce(log []*sessionv1.Event, want string) error {
	n := map[string]int{}
	for _, e := range log {
		n[sessionv1.EventName(e)]++
	}
	if got := callResult(log); got != want || n["tool_call.started"] != 1 || n["tool_call.finished"] != 1 {
		return fmt.Errorf("the call ended %q: %s", got, names(log))
	}
	return nil
}

func TestAnInterruptOfOneTurnLeavesTheOthers(t *testing.T) {
	t.Parallel()
	f := start(t, slow)
	ctx := t.Context()
	s := f.session(ctx, t)
	active := f.create(ctx, t, s, "block")
	<-f.peers.blocked
	first, second, third := f.create(ctx, t, s, "hello"), f.create(ctx, t, s, "hello"), f.create(ctx, t, s, "hello")
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s, Turn: second.Name})
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s, Turn: active.Name})
	for turn, want := range map[*sessionv1.Turn]sessionv1.TurnState{
		active: sessionv1.TurnState_TURN_STATE_INTERRUPTED, second: sessionv1.TurnState_TURN_STATE_INTERRUPTED, first: complete, third: complete,
	} {
		if end := f.waitForEnd(ctx, t, turn.Name); end.State != want {
			t.Errorf("%s ended %v, want %v", turn.Name, end.State, want)
		}
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s, Turn: second.Name}) // it has ended
	if end := finished(t, f.turn(ctx, t, s, "hello")); end.State != complete {
		t.Errorf("the next message ended %v", end)
	}
	for name, r := range map[string]*sessionv1.InterruptSessionRequest{
		"of another session":  {Name: s, Turn: "sessions/other/turns/t"},
		"and the queued ones": {Name: s, Turn: second.Name, CancelQueued: true},
	} {
		if _, err := f.InterruptSession(ctx, r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
