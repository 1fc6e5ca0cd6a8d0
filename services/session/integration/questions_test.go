package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

const (
	accept  = commonv1.QuestionAction_QUESTION_ACTION_ACCEPT
	decline = commonv1.QuestionAction_QUESTION_ACTION_DECLINE
	closing = commonv1.QuestionAction_QUESTION_ACTION_CANCEL
)

// waitForQuestion waits until the turn waits for the answer to the question with this id.
func (f *fixture) waitForQuestion(ctx context.Context, t *testing.T, s, id string) *sessionv1.QuestionRequested {
	t.Helper()
	var asked *sessionv1.QuestionRequested
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool {
		if q := e.GetQuestionRequested(); q.GetQuestion().GetId() == id {
			asked = q
		}
		return asked != nil && e.GetTurnWaiting() != nil
	})
	return asked
}

// resolvedQuestions returns the answers in a session's log.
func (f *fixture) resolvedQuestions(ctx context.Context, t *testing.T, s string) (all []*sessionv1.QuestionResolved) {
	t.Helper()
	for _, e := range f.log(ctx, t, s) {
		if r := e.GetQuestionResolved(); r != nil {
			all = append(all, r)
		}
	}
	return all
}

func TestAnAgentAsksAPersonAlsoAcrossARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action  commonv1.QuestionAction
		content string
		want    string // of the result
	}{
		"the person chooses":           {accept, `{"answers":{"Which?":"B"}}`, "OK: The user answered:\n- Which? B"},
		"the person writes":            {accept, `{"answers":{"Which?":"neither"}}`, "OK: The user answered:\n- Which? neither"},
		"the person does not want to":  {decline, "", "REFUSED: The user does not want to answer."},
		"the person closes the window": {closing, "", "REFUSED: The user closed the question"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, asking)
			ctx := t.Context()
			s := f.session(ctx, t)
			turn := f.create(ctx, t, s, "ask me")
			asked := f.waitForQuestion(ctx, t, s, "1")
			if asked.Tool != "AskUserQuestion" || len(asked.Question.Items) != 1 || asked.Question.Items[0].Options[1].Label != "B" || asked.ExpireTime.AsTime().Before(time.Now()) {
				t.Errorf("the question is %v", asked)
			}
			f.restart(t)
			answer := &sessionv1.AnswerQuestionRequest{Parent: s, CallId: asked.CallId, QuestionId: "1", Action: c.action, ContentJson: c.content}
			if _, err := f.AnswerQuestion(ctx, answer); err != nil {
				t.Fatal(err)
			}
			f.waitForEnd(ctx, t, turn.Name)
			if got := lastResults(f.messages(ctx, t, s)); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("the model reads %q", got)
			}
			want := []*sessionv1.QuestionResolved{{CallId: asked.CallId, QuestionId: "1", Action: c.action, ContentJson: c.content, User: "default"}}
			if d := cmp.Diff(want, f.resolvedQuestions(ctx, t, s), protocmp.Transform()); d != "" {
				t.Error(d)
			}
			if _, err := f.AnswerQuestion(ctx, answer); err != nil {
				t.Errorf("the same answer after the turn: %v", err)
			}
			if f.peers.executed[asked.CallId] != 1 {
				t.Errorf("tools got %d results", f.peers.executed[asked.CallId])
			}
		})
	}
}

// TestTheServerOfAToolAsksAPersonTwice answers each question through another replica.
func TestTheServerOfAToolAsksAPersonTwice(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "elicit")
	first := f.waitForQuestion(ctx, t, s, "1")
	list, err := f.ListApprovals(ctx, &sessionv1.ListApprovalsRequest{})
	if err != nil || len(list.Approvals) != 1 || list.Approvals[0].Question.GetServer() != "wiki" || list.Approvals[0].CallId != first.CallId ||
		list.Approvals[0].Turn != turn.Name || list.Approvals[0].Session != s {
		t.Errorf("what waits: %v %v", list, err)
	}
	f.restart(t)
	answer := func(id string, action commonv1.QuestionAction, content string) error {
		_, err := f.AnswerQuestion(ctx, &sessionv1.AnswerQuestionRequest{Parent: s, CallId: first.CallId, QuestionId: id, Action: action, ContentJson: content})
		return err
	}
	for name, err := range map[string]error{
		"a value that does not fit":   answer("1", accept, `{"port":"high"}`),
		"a form that is not complete": answer("1", accept, `{}`),
		"content of a refusal":        answer("1", decline, `{"port":1}`),
	} {
		bad, _ := apierr.Detail[*errdetails.BadRequest](err)
		if status.Code(err) != codes.InvalidArgument || len(bad.GetFieldViolations()) != 1 || bad.FieldViolations[0].Field != "content_json" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := answer("1", accept, `{"port":8080}`); err != nil {
		t.Fatal(err)
	}
	f.waitForQuestion(ctx, t, s, "2")
	f.restart(t)
	if err := answer("1", accept, `{"port":8080}`); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_QUESTION_MISMATCH) {
		t.Errorf("an answer to the first question: %v", err)
	}
	if err := answer("2", accept, ""); err != nil {
		t.Fatal(err)
	}
	if end := f.waitForEnd(ctx, t, turn.Name); end.FinalText != "QUESTION_ACTION_ACCEPT" {
		t.Errorf("the turn ended %v", end)
	}
	want := []*commonv1.QuestionAnswer{{Id: "1", Action: accept, ContentJson: `{"port":8080}`, User: "default"}, {Id: "2", Action: accept, User: "default"}}
	if d := cmp.Diff(want, f.peers.answers[first.CallId], protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

func TestASecondAnswerLearnsOfTheFirst(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "ask me")
	asked := f.waitForQuestion(ctx, t, s, "1")
	answer := func(action commonv1.QuestionAction, content string) error {
		_, err := f.AnswerQuestion(ctx, &sessionv1.AnswerQuestionRequest{Parent: s, CallId: asked.CallId, QuestionId: "1", Action: action, ContentJson: content})
		return err
	}
	const a, b = `{"answers":{"Which?":"A"}}`, `{"answers":{"Which?":"B"}}`
	if err := answer(accept, a); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at once", "after the turn"} {
		if err := answer(accept, a); err != nil {
			t.Errorf("%s, the same: %v", when, err)
		}
		for _, err := range []error{answer(accept, b), answer(decline, "")} {
			info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
			if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) || info.GetMetadata()["action"] != "ACCEPT" || info.GetMetadata()["user"] != "default" {
				t.Errorf("%s, another: %v", when, err)
			}
		}
		f.waitForEnd(ctx, t, turn.Name)
	}
	_, approval := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: asked.CallId, Digest: "1", Approved: true})
	_, unknown := f.AnswerQuestion(ctx, &sessionv1.AnswerQuestionRequest{Parent: s, CallId: "none", QuestionId: "1", Action: decline})
	if status.Code(approval) != codes.FailedPrecondition || !apierr.Is(unknown, sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_FOUND) {
		t.Errorf("an approval of a question: %v; an answer to nothing: %v", approval, unknown)
	}
}

func TestAQuestionThatGetsNoAnswerExpires(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"ask me": "EXPIRED: The user was asked. No answer came", "elicit": "OK: QUESTION_ACTION_CANCEL"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			f := start(t, asking, answersWithin(200*time.Millisecond))
			ctx := t.Context()
			s := f.session(ctx, t)
			turn := f.create(ctx, t, s, text)
			f.waitForQuestion(ctx, t, s, "1")
			f.restart(t)
			f.waitForEnd(ctx, t, turn.Name)
			if got := lastResults(f.messages(ctx, t, s)); len(got) != 1 || !strings.HasPrefix(got[0], want) {
				t.Errorf("the model reads %q", got)
			}
			for _, r := range f.resolvedQuestions(ctx, t, s) {
				if !r.Expired || r.Action != closing {
					t.Errorf("the log has %v", r)
				}
			}
		})
	}
}

func TestAnInterruptEndsACallThatAsks(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "elicit")
	asked := f.waitForQuestion(ctx, t, s, "1")
	f.restart(t)
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, turn.Name)
	if !f.peers.cancelled[asked.CallId] {
		t.Error("tools was not told that the call is stopped")
	}
	_, err := f.AnswerQuestion(ctx, &sessionv1.AnswerQuestionRequest{Parent: s, CallId: asked.CallId, QuestionId: "1", Action: decline})
	list, listed := f.ListApprovals(ctx, &sessionv1.ListApprovalsRequest{})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED) || listed != nil || len(list.Approvals) != 0 {
		t.Errorf("after the end: %v; what waits: %v", err, errors.Join(listed))
	}
}
