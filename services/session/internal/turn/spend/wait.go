package spend

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// reserveAgain is the wait before a reservation is retried that fits only after
// other turns have returned a part of theirs.
const reserveAgain = 250 * time.Millisecond

// commitReserve commits a write with a reservation. If the reservation does not
// fit only because of other reservations, it waits for these to be settled, for
// as long as the operator allows. Waiting turns retry one after another, so
// that a burst causes no load. It returns early when the turn's context ends,
// and with state.ErrHandOver when the worker must stop.
func (s *Spend) commitReserve(sc state.Scope, write store.Write, ask *store.Reserve) error {
	if err := sc.Commit(write); err != nil || !later(ask) {
		return err
	}
	ctx, cancel := context.WithTimeout(sc, s.Budgets.Wait)
	defer cancel()
	sc = sc.With(ctx)
	for later(ask) && ctx.Err() == nil {
		d := ask.Answer.Denied
		leave, err := s.Queues.Enter(ctx, sc.Lease.Tenant, d.Scope, d.Subject)
		if err != nil {
			return nil // the time is up, and the denial stands
		}
		err = s.tryAgain(sc, ask)
		leave()
		if err != nil {
			return err
		}
	}
	return nil
}

func later(r *store.Reserve) bool { return r.Answer.Denied != nil && r.Answer.Denied.Later }

// tryAgain retries a reservation until it is granted, another budget denies it,
// or the context ends.
func (s *Spend) tryAgain(sc state.Scope, ask *store.Reserve) error {
	first := *ask.Answer.Denied
	for {
		if err := sc.Commit(store.Write{Reserve: []*store.Reserve{ask}}); err != nil {
			return err
		}
		if d := ask.Answer.Denied; !later(ask) || d.Scope != first.Scope || d.Subject != first.Subject {
			return nil
		}
		if sc.Draining.Load() {
			return s.Leave(sc)
		}
		timer := time.NewTimer(reserveAgain)
		select {
		case <-timer.C:
		case <-sc.Done():
			timer.Stop()
			return nil
		}
	}
}

// Leave leaves the turn to another worker. It returns state.ErrHandOver unless the log fails.
func (s *Spend) Leave(sc state.Scope) error {
	var write store.Write
	s.SettleTime(sc.Active, &write)
	if len(write.Settle) > 0 {
		write.Turns = []*store.TurnRow{sc.Active.Row()}
		if err := sc.Append(write); err != nil {
			return err
		}
	}
	if err := sc.Flush(); err != nil { // giving the lease back loses what is not written
		return err
	}
	return state.ErrHandOver
}
