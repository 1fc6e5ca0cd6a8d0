package tables

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type feedbacks struct{ db DB }

// ListFeedback implements store.Feedbacks. Ids grow with time.
func (t feedbacks) ListFeedback(ctx context.Context, k store.Key, before string, n int) ([]*sessionv1.Feedback, error) {
	var bodies [][]byte
	err := t.db.Read(ctx, "list feedback", func(q sqldb.Queryer) (err error) {
		if err := SessionExists(ctx, q, k); err != nil {
			return err
		}
		bodies, err = sqldb.Collect(ctx, q, sqldb.Value[[]byte],
			"select body from feedback where tenant = $1 and session = $2 and ($3 = '' or feedback < $3) order by feedback desc limit $4",
			k.Tenant, k.Session, before, sqldb.Limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return plan.Decode[sessionv1.Feedback](bodies)
}
