package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// idleBatch is how many sessions are deleted between two checks of the time limit.
const idleBatch = 100

// deleteIdle does the store.JobRetain: it deletes the sessions that have been idle
// for longer than the retention, in batches. It runs again at once if its time was
// not enough.
func (d *Deps) deleteIdle(ctx context.Context, _ store.Job) (*store.Job, error) {
	deadline, bounded := ctx.Deadline()
	begin := time.Now()
	deleted := 0
	for {
		gone, err := d.Store.DeleteIdle(ctx, d.Retention, idleBatch)
		if err != nil {
			return nil, fmt.Errorf("delete idle sessions: %w", err)
		}
		deleted += len(gone)
		if len(gone) < idleBatch {
			break
		}
		if bounded && time.Since(begin) > deadline.Sub(begin)/2 {
			return &store.Job{}, nil
		}
	}
	if deleted > 0 {
		d.Log.InfoContext(ctx, "deleted idle sessions", "sessions", deleted, "idle_for", d.Retention)
	}
	return nil, nil
}
