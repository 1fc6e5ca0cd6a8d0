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
