package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// deleteSession does a store.JobDelete: it deletes the session's data in tools and
// sandbox, and is done once both have confirmed it. They confirm also when they have
// no data.
func (d *Deps) deleteSession(ctx context.Context, j store.Job) (*store.Job, error) {
	session := "sessions/" + j.ID
	epoch, err := nextEpoch(j)
	if err != nil {
		return nil, err
	}
	called := d.Tools.DeleteSessionCalls(ctx, session, epoch)
	if called != nil {
		called = fmt.Errorf("delete the calls of %s in tools: %w", session, called)
	}
	files := d.Workspaces.DeleteWorkspace(ctx, session)
	if files != nil {
		files = fmt.Errorf("delete the workspace of %s in sandbox: %w", session, files)
	}
	return nil, errors.Join(called, files)
}

// nextEpoch returns the lowest epoch of a session that is created again under the
// id. 0 means unknown: the job is of an earlier version.
func nextEpoch(j store.Job) (int64, error) {
	if len(j.Body) == 0 {
		return 0, nil
	}
	last, err := strconv.ParseInt(string(j.Body), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the last epoch of the deleted session %s: %w", j.ID, err)
	}
	return last + 1, nil
}
