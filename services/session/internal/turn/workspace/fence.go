package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
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

// FenceTools makes the tools service refuse lower epochs than the call's.
type FenceTools func(ctx context.Context, call *commonv1.CallRef) error

// Fence shuts out the previous holder of the session. A holder that was paused and wakes up is
// refused by the database, but not by tools and the sandbox until they know the new epoch. Fence
// returns when both know it, or after fenceWait; then it goes on in the background. A session that
// was given back has no holder to shut out, and a session without tools can start no call.
//
// The scope ends with store.ErrStaleEpoch when this holder turns out to be the stale one. The
// caller must call stop.
func (w *Workspace) Fence(ctx context.Context, s *state.Session, fenceTools FenceTools) (_ context.Context, stop func()) {
	if !s.Lease.FenceDue || len(s.Spec.Tools) == 0 {
		return ctx, func() {}
	}
	ctx, lose := context.WithCancelCause(ctx)
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		if err := w.announce(ctx, s, fenceTools); errors.Is(err, store.ErrStaleEpoch) {
			lose(store.ErrStaleEpoch)
		} else if err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "the takeover of the session is not announced; its next holder has to announce it again", "session", s.Lease.Session, "error", err)
		}
	}()
	patience := time.NewTimer(fenceWait)
	defer patience.Stop()
	select {
	case <-announced:
	case <-ctx.Done():
	case <-patience.C:
		s.Logger.WarnContext(ctx, "tools or the sandbox has not confirmed the takeover of the session yet; retrying in the background", "session", s.Lease.Session, "epoch", s.Lease.Epoch)
	}
	return ctx, func() {
		lose(nil)
		<-announced
	}
}

// announce tells tools and the sandbox the epoch, and stores that they know it. It tries until ctx
// ends.
func (w *Workspace) announce(ctx context.Context, s *state.Session, fenceTools FenceTools) error {
	both, telling := errgroup.WithContext(ctx)
	both.Go(func() error {
		return retryAnnouncement(telling, func(ctx context.Context) error { return fenceTools(ctx, fenceRef(s)) })
	})
	both.Go(func() error {
		return retryAnnouncement(telling, func(ctx context.Context) error {
			if w.maker.nodes.Managed() && s.NodeName() == "" {
				return nil // no workspace yet
			}
			err := w.maker.sandbox.FenceWorkspace(ctx, fenceRef(s))
			if errors.Is(err, remote.ErrNoWorkspace) {
				return nil // the workspace is made under an epoch that tools has accepted
			}
			return err
		})
	})
	if err := both.Wait(); err != nil {
		return err
	}
	return s.Store.Fenced(ctx, s.Lease)
}

// fenceRef names no generation of the workspace: the epoch belongs to the session.
func fenceRef(s *state.Session) *commonv1.CallRef {
	ref := s.CallRef(fmt.Sprintf("fence.%s.%d", s.Lease.Session, s.Lease.Epoch))
	ref.WorkspaceGeneration = 0
	return ref
}

// retryAnnouncement repeats do until it succeeds, ctx ends, or another holder has the session.
// A peer of an older version, which knows no fences, is not asked again.
func retryAnnouncement(ctx context.Context, do func(context.Context) error) error {
	for wait := fenceBackoff; ; wait = min(2*wait, fenceTimeout) {
		try, cancel := context.WithTimeout(ctx, fenceTimeout)
		err := do(try)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, remote.ErrStaleEpoch):
			return fmt.Errorf("announce the takeover: %w", store.ErrStaleEpoch)
		case errors.Is(err, remote.ErrUnsupported):
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
