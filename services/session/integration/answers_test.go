package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
)

func TestTwoPeopleAnswerOneApproval(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ann := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleOperator})
	bob := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "bob", Role: principal.RoleOperator})
	s := f.session(ann, t)
	turn := f.create(ann, t, s, "write")
	ask := f.waitForAsk(ann, t, s)
	answer := func(ctx context.Context, approved bool, comment string) error {
		_, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: ask.CallId, Digest: ask.Digest, Approved: approved, Comment: comment})
		return err
	}
	if err := answer(ann, true, ""); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		if err := errors.Join(answer(ann, true, ""), answer(bob, true, "")); err != nil {
			t.Errorf("%s, the same answer: %v", when, err)
		}
		for name, err := range map[string]error{"another": answer(bob, false, ""), "one with a comment": answer(bob, true, "be quick")} {
			info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
			if status.Code(err) != codes.FailedPrecondition || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) || info.GetMetadata()["user"] != "ann" ||
				info.GetMetadata()["approved"] != "true" || info.GetMetadata()["time"] == "" || !strings.Contains(err.Error(), "was allowed before, by ann at ") {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
	}
	check("at once")
	f.waitForEnd(ann, t, turn.Name)
	check("after the turn")
	if len(f.peers.executed) != 2 {
		t.Errorf("%d calls were executed", len(f.peers.executed))
	}
	for _, id := range []string{"none", lastPart(turn.Name) + ".9.9"} {
		if _, err := f.ResolveApproval(bob, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: id, Digest: "d"}); status.Code(err) != codes.NotFound || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_FOUND) {
			t.Errorf("an answer to %s: %v", id, err)
		}
	}
}

func TestAClientsResultThatIsRepeatedIsOneResult(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	s := f.session(t.Context(), t)
	created, err := f.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: s, Text: "client", ClientTools: []*sessionv1.ClientTool{{Name: "where"}}})
	if err != nil {
		t.Fatal(err)
	}
	call := f.waitForCall(t.Context(), t, s)
	submit := func(text string, isError bool) error {
		_, err := f.SubmitToolResult(t.Context(), &sessionv1.SubmitToolResultRequest{Parent: s, CallId: call, IsError: isError,
			Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}}})
		return err
	}
	for _, when := range []string{"at once", "after the turn"} {
		if err := errors.Join(submit("at the quay", false), submit("at the quay", false)); err != nil {
			t.Errorf("%s, the same result: %v", when, err)
		}
		for _, err := range []error{submit("at home", false), submit("at the quay", true)} {
			if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) {
				t.Errorf("%s, another result: %v", when, err)
			}
		}
		if end := f.waitForEnd(t.Context(), t, created.Turn.Name); end.FinalText != "at the quay" {
			t.Errorf("the turn ended %v", end)
		}
	}
}

// waitForCall waits until the turn waits, and names the first call that it waits for.
func (f *fixture) waitForCall(ctx context.Context, t *testing.T, s string) (call string) {
	t.Helper()
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool {
		if w := e.GetTurnWaiting(); w != nil {
			call = w.CallIds[0]
		}
		return call != ""
	})
	return call
}

func TestACallThatWasInterruptedWhileItWaitedDidNothing(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	s := f.session(t.Context(), t)
	turn := f.create(t.Context(), t, s, "write")
	ask := f.waitForAsk(t.Context(), t, s)
	f.restart(t) // the replica that stops the turn has not made the call
	f.interrupt(t.Context(), t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(t.Context(), t, turn.Name)
	got := lastResults(f.messages(t.Context(), t, s))
	if len(got) != 2 || !strings.HasPrefix(got[1], "INTERRUPTED:") || !strings.Contains(got[1], "it never started and did nothing") {
		t.Errorf("the results are %q", got)
	}
	_, err := f.ResolveApproval(t.Context(), &sessionv1.ResolveApprovalRequest{Parent: s, CallId: ask.CallId, Digest: ask.Digest, Approved: true})
	if status.Code(err) != codes.FailedPrecondition || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED) {
		t.Errorf("an answer after the end: %v", err)
	}
	if end := finished(t, f.turn(t.Context(), t, s, "and now?")); end.State != complete {
		t.Errorf("the next message ended %v", end)
	}
}

func answersWithin(ttl time.Duration) func(*session.Config) {
	return func(c *session.Config) { c.AnswerTTL = ttl }
}

func TestACallThatGetsNoAnswerExpires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		tools      []*sessionv1.ClientTool
	}{
		"an approval":       {"write", "it never started and did nothing", nil},
		"a client's result": {"client", "not known whether the client has done anything", []*sessionv1.ClientTool{{Name: "where"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, asking, answersWithin(300*time.Millisecond))
			s := f.session(t.Context(), t)
			created, err := f.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: s, Text: c.text, ClientTools: c.tools})
			if err != nil {
				t.Fatal(err)
			}
			call := f.waitForCall(t.Context(), t, s)
			f.restart(t) // the time goes on
			if end := f.waitForEnd(t.Context(), t, created.Turn.Name); end.State != complete {
				t.Errorf("the turn ended %v", end)
			}
			got := lastResults(f.messages(t.Context(), t, s))
			if last := got[len(got)-1]; !strings.HasPrefix(last, "EXPIRED:") || !strings.Contains(last, c.want) {
				t.Errorf("the results are %q", got)
			}
			_, err = f.SubmitToolResult(t.Context(), &sessionv1.SubmitToolResultRequest{Parent: s, CallId: call})
			if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED) || !strings.Contains(err.Error(), "time for an answer ran out") {
				t.Errorf("a result after the time: %v", err)
			}
			if end := finished(t, f.turn(t.Context(), t, s, "and now?")); end.State != complete {
				t.Errorf("the next message ended %v", end)
			}
		})
	}
}

// expires is a recovery in which no person answers.
var expires = recovery{
	name: "a turn whose question gets no answer", scenario: asking, change: answersWithin(time.Minute),
	play: func(ctx context.Context, c *cluster) error {
		return errors.Join(c.send(ctx, "write"), c.ended(ctx, 1))
	},
	check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
		err := errors.Join(c.executed(1), ends(log, complete))
		if got := fmt.Sprint(lastResults(conversation)); !strings.Contains(got, "EXPIRED: ") {
			err = errors.Join(err, fmt.Errorf("the results are %s", got))
		}
		return err
	},
}
