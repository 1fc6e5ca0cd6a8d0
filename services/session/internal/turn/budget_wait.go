package turn

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// reserveAgain is the wait before a reservation is retried that fits only after
// other turns have returned a part of theirs.
const reserveAgain = 250 * time.Millisecond

// commitReserve commits a write with a reservation. If the reservation does not
// fit only because of other reservations, it waits for these to be settled, for
// as long as the operator allows. Waiting turns retry one after another, so
// that a burst causes no load. It returns early when ctx, the turn's context,
// ends, and with ErrHandOver when the worker must stop.
func (w *Worker) commitReserve(ctx, parent context.Context, write store.Write, ask *store.Reserve) error {
	if err := w.Log.Commit(parent, write); err != nil || !later(ask) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.deps.Budgets.Wait)
	defer cancel()
	for later(ask) && ctx.Err() == nil {
		d := ask.Answer.Denied
		leave, err := w.deps.BudgetLines.Enter(ctx, w.Lease.Tenant, d.Scope, d.Subject)
		if err != nil {
			return nil // the time is up, and the denial stands
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

// tryAgain retries a reservation until it is granted, another budget denies it,
// or ctx ends.
func (w *Worker) tryAgain(ctx, parent context.Context, ask *store.Reserve) error {
	first := *ask.Answer.Denied
	for {
		if err := w.Log.Commit(parent, store.Write{Reserve: []*store.Reserve{ask}}); err != nil {
			return err
		}
		if d := ask.Answer.Denied; !later(ask) || d.Scope != first.Scope || d.Subject != first.Subject {
			return nil
		}
		if w.Draining.Load() {
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
