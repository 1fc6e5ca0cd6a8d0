package store

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Feedbacks stores what people think of answers. A write with a FeedbackGiven event adds what the event
// has. They go with their session.
type Feedbacks interface {
	// ListFeedback lists a session's feedback with an id below before ("": all), the last one first. ErrNotFound without
	// the session.
	ListFeedback(ctx context.Context, k Key, before string, limit int) ([]*sessionv1.Feedback, error)
}
