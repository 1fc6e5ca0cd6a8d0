package conversation

import (
	"context"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// FeedbackServer implements FeedbackService.
type FeedbackServer struct {
	sessionv1.UnimplementedFeedbackServiceServer
	shared
}

// CreateFeedback puts a judgement into the inbox and waits until it is in the log.
func (x *FeedbackServer) CreateFeedback(
	ctx context.Context, r *sessionv1.CreateFeedbackRequest,
) (*sessionv1.CreateFeedbackResponse, error) {
	if _, err := x.Store.SessionOwner(ctx, request.Key(ctx, r.Parent)); err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	session, turnID := splitTurn(r.Feedback.Turn)
	if session != r.Parent {
		return nil, refusal.Input("feedback.turn", fmt.Sprintf("%s is not a turn of %s.", r.Feedback.Turn, r.Parent))
	}
	turn, err := x.Store.GetTurn(ctx, request.Key(ctx, session), turnID)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: session, Turn: r.Feedback.Turn})
	}
	if n := turn.Steps; r.Feedback.Step > n+1 || r.Feedback.Step > n && turn.EndTime != nil {
		return nil, refusal.Input("feedback.step", fmt.Sprintf("%s has %d steps. Leave the step out to judge the turn as a whole.", r.Feedback.Turn, n))
	}
	answer, err := x.command(ctx, r.Parent, "CreateFeedback", r.RequestId, r, store.Submit{
		Command: store.Command{Kind: store.CommandFeedback, TurnID: turnID, CallID: id.New()},
	})
	if err != nil {
		return nil, err
	}
	made, after, err := readAwaited(answer.Value)
	if err != nil {
		return nil, err
	}
	resp := &sessionv1.CreateFeedbackResponse{}
	err = x.logs.Await(ctx, r.Parent, after, func(e *sessionv1.Event) (bool, error) {
		f := e.GetFeedbackGiven().GetFeedback()
		if f.GetName() != r.Parent+"/feedback/"+made {
			return false, nil
		}
		resp.Feedback = f
		return true, nil
	})
	return resp, err
}

// ListFeedback lists a page of a session's feedback.
func (x *FeedbackServer) ListFeedback(ctx context.Context, r *sessionv1.ListFeedbackRequest) (*sessionv1.ListFeedbackResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := "ListFeedback\x00" + k.Tenant + "\x00" + k.Session
	list := func(before string, n int) ([]*sessionv1.Feedback, error) {
		return x.Store.ListFeedback(ctx, k, before, n)
	}
	all, next, err := request.List(scope, r, refusal.Subject{Session: r.Parent}, request.ByID, list)
	return &sessionv1.ListFeedbackResponse{Feedback: all, NextPageToken: next}, err
}
