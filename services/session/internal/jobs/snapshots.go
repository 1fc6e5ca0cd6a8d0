package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cenkalti/backoff/v5"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// mostSnapshots is how many snapshots the sandbox deletes at once.
const mostSnapshots = 1000

// deleteSnapshots does a store.JobSnapshots. No checkpoint names the snapshots any
// more, so the current holder of the session does not matter. The job is retried if
// the epoch has just been raised, or the workspace is being moved.
func (d *Deps) deleteSnapshots(ctx context.Context, j store.Job) (*store.Job, error) {
	k, ids, err := store.SnapshotsOf(j)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	p, epoch, err := d.Store.PlaceOf(ctx, k)
	switch {
	case epoch == 0 && (err == nil || errors.Is(err, store.ErrNotFound)):
		return nil, nil // they were deleted with the session
	case err != nil && !errors.Is(err, store.ErrNotFound): // without several nodes there are no places
		return nil, err
	case p.Restore:
		return nil, fmt.Errorf("delete snapshots of sessions/%s: its workspace is being restored on another node", k.Session)
	}
	for some := range slices.Chunk(ids, mostSnapshots) {
		call := &commonv1.CallRef{
			// A call's failure is its final answer, so each attempt is another call.
			Session: "sessions/" + k.Session, Epoch: epoch, CallId: fmt.Sprintf("clear.%s.%d", some[0], j.Attempt),
			Node: p.Node, WorkspaceGeneration: p.Generation,
		}
		err := d.Sandbox.DeleteSnapshots(ctx, call, some...)
		if err != nil && !errors.Is(err, remote.ErrNoWorkspace) && !errors.Is(err, remote.ErrUnsupported) {
			return nil, fmt.Errorf("delete snapshots of sessions/%s: %w", k.Session, err)
		}
	}
	return nil, nil
}
