package tables

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// checkpoints has the rows that follow from events of their own.
type checkpoints struct {
	db DB
	feedbacks
}

// GetCheckpoint implements store.Checkpoints.
func (t checkpoints) GetCheckpoint(ctx context.Context, k store.Key, id string) (*sessionv1.Checkpoint, error) {
	body, err := sqldb.Value[[]byte](t.db.Reader().QueryRow(ctx,
		"select body from checkpoints where tenant = $1 and session = $2 and checkpoint = $3", k.Tenant, k.Session, id))
	if err != nil {
		return nil, t.db.Fail("get checkpoint", err)
	}
	return decode[sessionv1.Checkpoint](body)
}

// ListCheckpoints implements store.Checkpoints.
func (t checkpoints) ListCheckpoints(ctx context.Context, k store.Key, before int64, n int) ([]*sessionv1.Checkpoint, error) {
	var bodies [][]byte
	err := t.db.Read(ctx, "list checkpoints", func(q sqldb.Queryer) (err error) {
		if err := SessionExists(ctx, q, k); err != nil {
			return err
		}
		bodies, err = sqldb.Collect(ctx, q, sqldb.Value[[]byte],
			"select body from checkpoints where tenant = $1 and session = $2 and ($3::bigint = 0 or seq < $3) order by seq desc limit $4",
			k.Tenant, k.Session, before, sqldb.Limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return plan.Decode[sessionv1.Checkpoint](bodies)
}
