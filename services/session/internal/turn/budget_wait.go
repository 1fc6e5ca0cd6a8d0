package turn

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// reserveAgain is the wait before a reservation is tried again that only fits once
// others have given something back.
const reserveAgain = 250 * time.Millisecond

// commitReserve commits a write with a reservation. Where it does not fit only
// because of what others have reserved, it waits for these to give something
// back, as long as the operator has set: one turn after another tries again, so
// that a burst is no load. It ends early when ctx, the turn's, does, and with
// ErrHandOver when the worker is to stop.
func (w *Worker) commitReserve(ctx, parent context.Context, write store.Write, ask *store.Reserve) error {
	if err := w.log.Commit(parent, write); err != nil || !later(ask) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.deps.Budgets.Wait)
	defer cancel()
	for later(ask) && ctx.Err() == nil {
		d := ask.Answer.Denied
		leave, err := w.deps.BudgetLines.Enter(ctx, w.lease.Tenant, d.Scope, d.Subject)
		if err != nil {
			return nil // the time is up, and the answer is what it was
		}
		err = w.tryAgain(ctx, parent, ask)
		leave()
		if err != nil {
			return err
		}
	}
	return nil
}

func later(r *store.Reserve) bool { return r.Answer.Denied != nil && r.Answer.Denied.Later }

// tryAgain tries a reservation until it is granted, another budget stands against
// it, or ctx ends.
func (w *Worker) tryAgain(ctx, parent context.Context, ask *store.Reserve) error {
	first := *ask.Answer.Denied
	for {
		if err := w.log.Commit(parent, store.Write{Reserve: []*store.Reserve{ask}}); err != nil {
			return err
		}
		if d := ask.Answer.Denied; !later(ask) || d.Scope != first.Scope || d.Subject != first.Subject {
			return nil
		}
		if w.draining.Load() {
			return w.leaveTurn(parent)
		}
		timer := time.NewTimer(reserveAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}
