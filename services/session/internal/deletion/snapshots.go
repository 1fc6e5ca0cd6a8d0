package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// mostSnapshots is how many the sandbox deletes at once.
const mostSnapshots = 1000

// Places tells where the sandbox is to be called, and with which epoch.
type Places interface {
	PlaceOf(ctx context.Context, k store.Key) (p store.Place, epoch int64, err error)
}

// Snapshots does a store.JobSnapshots. Nobody names the snapshots any more, so it
// does not matter who holds the session meanwhile: where the epoch has just been
// raised, or the workspace is on its way elsewhere, the job is tried again.
func Snapshots(s Places, snapshots sandboxv1.SnapshotServiceClient) jobs.Handler {
	return func(ctx context.Context, j store.Job) (*store.Job, error) {
		k, ids, err := store.SnapshotsOf(j)
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		p, epoch, err := s.PlaceOf(ctx, k)
		switch {
		case epoch == 0 && (err == nil || errors.Is(err, store.ErrNotFound)):
			return nil, nil // they went with the session
		case err != nil && !errors.Is(err, store.ErrNotFound): // without several nodes there are no places
			return nil, err
		case p.Restore:
			return nil, fmt.Errorf("delete snapshots of sessions/%s: its workspace is being made on another node", k.Session)
		}
		ctx = node.At(ctx, p.Node)
		for some := range slices.Chunk(ids, mostSnapshots) {
			_, err := snapshots.DeleteSnapshots(ctx, &sandboxv1.DeleteSnapshotsRequest{
				Call: &commonv1.CallRef{
					// A call's failure is its answer for good: each try is another one.
					Session: "sessions/" + k.Session, Epoch: epoch, CallId: fmt.Sprintf("clear.%s.%d", some[0], j.Attempt),
					Node: p.Node, WorkspaceGeneration: p.Generation,
				},
				Snapshots: some,
			})
			if err != nil && apierr.Reason(err) != "WORKSPACE_NOT_FOUND" && status.Code(err) != codes.Unimplemented {
				return nil, fmt.Errorf("delete snapshots of sessions/%s: %w", k.Session, err)
			}
		}
		return nil, nil
	}
}
