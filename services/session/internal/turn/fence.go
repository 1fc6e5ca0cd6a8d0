package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// fenceWait bounds how long a takeover waits until tools and the sandbox know of it.
	fenceWait = time.Second
	// fenceTimeout bounds one attempt to tell one of them.
	fenceTimeout = 5 * time.Second
	// fenceBackoff is the wait before the second attempt; it doubles up to
	// fenceTimeout.
	fenceBackoff = 100 * time.Millisecond
)

// fence shuts out the previous holder of the session. A holder that was paused and
// wakes up is refused by the database, but not by tools and the sandbox until they
// know the new epoch. fence returns when both know it, or after fenceWait; then it
// goes on in the background. A session that was given back has no holder to shut
// out, and a session without tools can start no call.
//
// The context ends with store.ErrStaleEpoch when this holder turns out to be the
// stale one. The caller must call stop.
func (w *Worker) fence(ctx context.Context) (_ context.Context, stop func()) {
	if !w.Lease.FenceDue || len(w.Spec.Tools) == 0 {
		return ctx, func() {}
	}
	ctx, lose := context.WithCancelCause(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		if err := w.announce(ctx); errors.Is(err, store.ErrStaleEpoch) {
			lose(store.ErrStaleEpoch)
		} else if err != nil && ctx.Err() == nil {
			w.Logger.WarnContext(ctx, "the session's next holder has to tell of its epoch again", "session", w.Lease.Session, "error", err)
		}
	}()
	patience := time.NewTimer(fenceWait)
	defer patience.Stop()
	select {
	case <-told:
	case <-ctx.Done():
	case <-patience.C:
		w.Logger.WarnContext(ctx, "tools or the sandbox cannot be told yet that the session was taken over; it is tried beside the turn", "session", w.Lease.Session, "epoch", w.Lease.Epoch)
	}
	return ctx, func() {
		lose(nil)
		<-told
	}
}

// announce tells tools and the sandbox the epoch, and stores that they know it. It
// tries until ctx ends.
func (w *Worker) announce(ctx context.Context) error {
	both, telling := errgroup.WithContext(ctx)
	both.Go(func() error {
		return insist(telling, func(ctx context.Context) error {
			_, err := w.deps.Calls.FenceSession(ctx, &toolsv1.FenceSessionRequest{Call: w.fenceRef()})
			return err
		})
	})
	both.Go(func() error {
		return insist(telling, func(ctx context.Context) error {
			if w.deps.Nodes.Managed() && w.NodeName() == "" {
				return nil // no workspace yet
			}
			_, err := w.deps.Workspaces.FenceWorkspace(ctx, &sandboxv1.FenceWorkspaceRequest{Call: w.fenceRef()})
			if apierr.Reason(err) == "WORKSPACE_NOT_FOUND" {
				return nil // the workspace is made under an epoch that tools has accepted
			}
			return err
		})
	})
	if err := both.Wait(); err != nil {
		return err
	}
	return w.Store.Fenced(ctx, w.Lease)
}

// fenceRef names no generation of the workspace: the epoch belongs to the
// session.
func (w *Worker) fenceRef() *commonv1.CallRef {
	return &commonv1.CallRef{
		Session: "sessions/" + w.Lease.Session, Epoch: w.Lease.Epoch,
		CallId: fmt.Sprintf("fence.%s.%d", w.Lease.Session, w.Lease.Epoch), Node: w.NodeName(),
	}
}

// insist repeats do until it succeeds, ctx ends, or another holder has the session.
// A peer of an older version, which knows no fences, is not asked again.
func insist(ctx context.Context, do func(context.Context) error) error {
	for wait := fenceBackoff; ; wait = min(2*wait, fenceTimeout) {
		try, cancel := context.WithTimeout(ctx, fenceTimeout)
		err := do(try)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case apierr.Reason(err) == "STALE_EPOCH":
			return fmt.Errorf("tell of the takeover: %w", store.ErrStaleEpoch)
		case status.Code(err) == codes.Unimplemented:
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
