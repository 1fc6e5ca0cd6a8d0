package integration

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func (f *fixture) judgements() sessionv1.FeedbackServiceClient {
	return sessionv1.NewFeedbackServiceClient(f.conn)
}

const (
	good = sessionv1.FeedbackValue_FEEDBACK_VALUE_POSITIVE
	poor = sessionv1.FeedbackValue_FEEDBACK_VALUE_NEGATIVE
)

// A person judges a turn that has ended: the log has it, and a list shows it, also after a restart.
func TestAPersonJudgesAnAnswer(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, hello), t.Context()
	s := f.session(ctx, t)
	turn := f.turn(ctx, t, s, "hello")[0].Turn
	other := f.turn(ctx, t, f.session(ctx, t), "hello")[0].Turn
	r := &sessionv1.CreateFeedbackRequest{Parent: s, Feedback: &sessionv1.Feedback{Turn: turn, Step: 1, Value: poor, Comment: "too short"}, RequestId: "once"}
	made, err := f.judgements().CreateFeedback(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if got := made.Feedback; got.Value != poor || got.Comment != "too short" || got.Step != 1 || got.User != "users/default" || got.CreateTime == nil {
		t.Errorf("made is %v", got)
	}
	again, err := f.judgements().CreateFeedback(ctx, r)
	if err != nil || !proto.Equal(again, made) {
		t.Errorf("the same request again: %v (%v)", again, err)
	}
	f.restart(t)
	if _, err := f.judgements().CreateFeedback(ctx, &sessionv1.CreateFeedbackRequest{Parent: s, Feedback: &sessionv1.Feedback{Turn: turn, Value: good}}); err != nil {
		t.Fatal(err)
	}
	list, err := f.judgements().ListFeedback(ctx, &sessionv1.ListFeedbackRequest{Parent: s})
	if err != nil || len(list.Feedback) != 2 || list.Feedback[0].Value != good || !proto.Equal(list.Feedback[1], made.Feedback) {
		t.Errorf("the list is %v (%v)", list, err)
	}
	events, err := f.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	all := names(events.Events)
	if !strings.HasSuffix(all, "turn.finished feedback.given feedback.given") || events.Events[len(events.Events)-1].Turn != turn {
		t.Errorf("the log is %s", all)
	}
	for field, change := range map[string]func(*sessionv1.Feedback){
		"feedback.value": func(x *sessionv1.Feedback) { x.Value = 0 }, "feedback.turn": func(x *sessionv1.Feedback) { x.Turn = other },
		"feedback.step": func(x *sessionv1.Feedback) { x.Step = 2 }, "feedback.comment": func(x *sessionv1.Feedback) { x.Comment = strings.Repeat("x", 20000) },
	} {
		bad := &sessionv1.CreateFeedbackRequest{Parent: s, Feedback: &sessionv1.Feedback{Turn: turn, Value: good}}
		change(bad.Feedback)
		_, err := f.judgements().CreateFeedback(ctx, bad)
		d, _ := apierr.Detail[*errdetails.BadRequest](err)
		if apierr.Code(err) != codes.InvalidArgument || len(d.GetFieldViolations()) != 1 || d.FieldViolations[0].Field != field {
			t.Errorf("%s: %v names %v", field, err, d)
		}
	}
	absent := &sessionv1.CreateFeedbackRequest{Parent: s, Feedback: &sessionv1.Feedback{Turn: s + "/turns/nothing", Value: good}}
	if _, err := f.judgements().CreateFeedback(ctx, absent); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_FOUND) {
		t.Errorf("a turn that does not exist: %v", err)
	}
	if list, err := f.judgements().ListFeedback(ctx, &sessionv1.ListFeedbackRequest{Parent: s}); err != nil || len(list.Feedback) != 2 {
		t.Errorf("after bad requests the list is %v (%v)", list, err)
	}
}

// A turn that waits for a person is judged, and waits on.
func TestAWaitingTurnIsJudged(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, asking), t.Context()
	s := f.session(ctx, t)
	f.create(ctx, t, s, "write")
	asked := f.waitForAsk(ctx, t, s)
	now, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.judgements().CreateFeedback(ctx, &sessionv1.CreateFeedbackRequest{Parent: s, Feedback: &sessionv1.Feedback{Turn: now.Session.ActiveTurn, Step: 1, Value: good}}); err != nil {
		t.Fatal(err)
	}
	if now, err = f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s}); err != nil || now.Session.State != sessionv1.SessionState_SESSION_STATE_WAITING {
		t.Errorf("call %s: the session is %v (%v)", asked.CallId, now, err)
	}
}
