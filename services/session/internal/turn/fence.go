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
	// fenceTimeout bounds one try to tell one of them.
	fenceTimeout = 5 * time.Second
	// fenceBackoff is the wait before the second try; it doubles up to fenceTimeout.
	fenceBackoff = 100 * time.Millisecond
)

// fence shuts out the holder that this one has taken the session from: one that was
// paused and wakes up would be refused by the database, but not by tools and the
// sandbox as long as nobody has told them. It returns when both know, or after
// fenceWait; then it goes on beside the turn. A session that was given back has
// nobody to shut out, and one without tools nothing that could be started.
//
// The context ends, with store.ErrStaleEpoch, when it turns out that this holder is
// itself the one to be shut out. stop must be called.
func (w *Worker) fence(ctx context.Context) (_ context.Context, stop func()) {
	if !w.lease.FenceDue || len(w.spec.Tools) == 0 {
		return ctx, func() {}
	}
	ctx, lose := context.WithCancelCause(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		if err := w.announce(ctx); errors.Is(err, store.ErrStaleEpoch) {
			lose(store.ErrStaleEpoch)
		} else if err != nil && ctx.Err() == nil {
			w.deps.Log.WarnContext(ctx, "the session's next holder has to tell of its epoch again", "session", w.lease.Session, "error", err)
		}
	}()
	patience := time.NewTimer(fenceWait)
	defer patience.Stop()
	select {
	case <-told:
	case <-ctx.Done():
	case <-patience.C:
		w.deps.Log.WarnContext(ctx, "tools or the sandbox cannot be told yet that the session was taken over; it is tried beside the turn", "session", w.lease.Session, "epoch", w.lease.Epoch)
	}
	return ctx, func() {
		lose(nil)
		<-told
	}
}

// announce tells both of the epoch, and notes that they know. It tries for as long
// as ctx lasts.
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
			if w.deps.Nodes.Managed() && w.nodeName() == "" {
				return nil // there is no workspace yet
			}
			_, err := w.deps.Workspaces.FenceWorkspace(ctx, &sandboxv1.FenceWorkspaceRequest{Call: w.fenceRef()})
			if apierr.Reason(err) == "WORKSPACE_NOT_FOUND" {
				return nil // and it is made under an epoch that tools has let pass
			}
			return err
		})
	})
	if err := both.Wait(); err != nil {
		return err
	}
	return w.deps.Store.Fenced(ctx, w.lease)
}

// fenceRef names no generation of the workspace: the epoch is the session's.
func (w *Worker) fenceRef() *commonv1.CallRef {
	return &commonv1.CallRef{
		Session: "sessions/" + w.lease.Session, Epoch: w.lease.Epoch,
		CallId: fmt.Sprintf("fence.%s.%d", w.lease.Session, w.lease.Epoch), Node: w.nodeName(),
	}
}

// insist repeats do until it succeeds, ctx ends, or the session turns out to be
// another's. A peer of an older version, which knows no fences, is not asked again.
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
