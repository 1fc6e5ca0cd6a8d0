package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ListFeedback is the method of feedback.
const ListFeedback Method = "ListFeedback"

// ListFeedback implements store.Feedbacks.
func (s feedbacks) ListFeedback(ctx context.Context, k store.Key, before string, limit int) ([]*sessionv1.Feedback, error) {
	return do(ctx, s.injector, ListFeedback, func() ([]*sessionv1.Feedback, error) { return s.inner.ListFeedback(ctx, k, before, limit) })
}
