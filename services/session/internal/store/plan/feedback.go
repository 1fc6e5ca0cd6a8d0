package plan

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Feedback is the row of a person's judgement.
type Feedback struct {
	ID
	Body []byte
}

// feedbackRows returns the rows of what the events of a write have.
func feedbackRows(w store.Write) (all []Feedback, err error) {
	for _, e := range w.Events {
		f := e.GetFeedbackGiven().GetFeedback()
		if f == nil {
			continue
		}
		row, err := feedbackRow(w.Key, f)
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, nil
}

func feedbackRow(k store.Key, f *sessionv1.Feedback) (Feedback, error) {
	id, err := childID(k.Session, "feedback", f.GetName())
	if err != nil || id == "" {
		return Feedback{}, fmt.Errorf("feedback %q does not belong to session %s", f.GetName(), k.Session)
	}
	body, err := proto.Marshal(f)
	if err != nil {
		return Feedback{}, fmt.Errorf("marshal feedback %s: %w", id, err)
	}
	return Feedback{ID: ID{k, id}, Body: body}, nil
}
