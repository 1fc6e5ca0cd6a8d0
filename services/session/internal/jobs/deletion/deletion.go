// Package deletion removes the data of sessions: from the peers after a session
// was deleted, and whole sessions that have been idle for long.
package deletion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Peers returns the handler of store.JobDelete: it deletes the session's data in
// tools and sandbox, and is done once both have confirmed it. They confirm also
// when they have no data.
func Peers(tools *remote.Tools, workspaces *placement.Work) jobs.Handler {
	return func(ctx context.Context, j store.Job) (*store.Job, error) {
		session := "sessions/" + j.ID
		epoch, err := nextEpoch(j)
		if err != nil {
			return nil, err
		}
		called := tools.DeleteSessionCalls(ctx, session, epoch)
		if called != nil {
			called = fmt.Errorf("delete the calls of %s in tools: %w", session, called)
		}
		files := workspaces.DeleteWorkspace(ctx, session)
		if files != nil {
			files = fmt.Errorf("delete the workspace of %s in sandbox: %w", session, files)
		}
		return nil, errors.Join(called, files)
	}
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

const (
	// every is the interval between two searches for idle sessions.
	every = time.Hour
	// batch is how many are deleted between two checks of the time limit.
	batch = 100
)

// RetainJob returns the only job that deletes idle sessions. It belongs to no
// tenant.
func RetainJob() store.Job { return store.Job{Kind: store.JobRetain, ID: "retain"} }

// Idle deletes idle sessions.
type Idle interface {
	DeleteIdle(ctx context.Context, idle time.Duration, limit int) ([]store.Key, error)
}

// Retain returns the handler of RetainJob: it deletes the sessions that have
// been idle for longer than retention, in batches. It runs again in an hour, or
// at once if its time was not enough.
func Retain(s Idle, retention time.Duration, log *slog.Logger) jobs.Handler {
	return func(ctx context.Context, _ store.Job) (*store.Job, error) {
		deadline, bounded := ctx.Deadline()
		begin := time.Now()
		deleted := 0
		for {
			gone, err := s.DeleteIdle(ctx, retention, batch)
			if err != nil {
				return nil, fmt.Errorf("delete idle sessions: %w", err)
			}
			deleted += len(gone)
			if len(gone) < batch {
				break
			}
			if bounded && time.Since(begin) > deadline.Sub(begin)/2 {
				return &store.Job{}, nil
			}
		}
		if deleted > 0 {
			log.InfoContext(ctx, "deleted idle sessions", "sessions", deleted, "idle_for", retention)
		}
		return &store.Job{After: every}, nil
	}
}
