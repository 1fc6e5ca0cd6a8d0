package lifecycle

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// TakeFeedback keeps a person's judgement of a turn, which may have ended long ago, and adds it to the turn's trace.
func (l *Turns) TakeFeedback(sc state.Scope, c store.Command) error {
	r := &sessionv1.CreateFeedbackRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return fmt.Errorf("read feedback: %w", err)
	}
	t := sc.Active
	if t == nil || t.ID != c.TurnID {
		var err error
		if t, err = sc.LoadTurn(sc.Outlasting(), c.TurnID); err != nil {
			return err
		}
	}
	f := r.Feedback
	f.Name, f.User, f.TraceId, f.CreateTime = sc.Name("feedback", c.CallID), "users/"+c.User, t.Proto.TraceId, timestamppb.New(c.Time)
	err := sc.Append(store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{{
		Turn: t.Proto.Name, Step: f.Step, Body: &sessionv1.Event_FeedbackGiven{FeedbackGiven: &sessionv1.FeedbackGiven{Feedback: f}},
	}}})
	if err == nil {
		l.Telemetry.Judged(sc, t, f)
	}
	return err
}
