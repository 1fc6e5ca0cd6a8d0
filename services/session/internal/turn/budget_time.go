package turn

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// The time that a turn runs is reserved in slices, where a budget bounds it: the
// first before the turn does anything, the next ones while it runs. A slice is
// renewed at its half: what was used of it is settled, and as much time reserved
// from there on as there is, up to a slice. So the turn always holds the time
// until its next renewal, and the slices get shorter where a budget nears its end.
const (
	// timeSlice is longer than a lease lasts: a holder that cannot renew its slice
	// loses the session first.
	timeSlice = 20 * time.Second
	// leastSlice is the least to begin with, unless it is all that the budget has.
	leastSlice = time.Second
	// lastSlice is not renewed at its half, but at its end.
	lastSlice = 200 * time.Millisecond
	// timeReservation is the id of a session's reservation of time: only one of its
	// turns runs, so whoever comes next finds what is left of the one before.
	timeReservation = "time"
)

// timeHeld is the time that the running turn has reserved.
type timeHeld struct {
	// mu is held while the reservation is renewed: a settlement comes before or after.
	// It is a channel since synctest takes the wait for a mutex, here as long as a
	// commit, for work, and its clock stands still then.
	mu     chan struct{}
	bounds []store.Bound
	since  time.Time     // from when on it counts
	length time.Duration // 0: none is reserved
}

func newTimeHeld() timeHeld { return timeHeld{mu: make(chan struct{}, 1)} }

func (h *timeHeld) lock()   { h.mu <- struct{}{} }
func (h *timeHeld) unlock() { <-h.mu }

// holdTime reserves the turn's first slice, where a budget bounds time, and waits
// for it. It tells whether the turn may go on: else it has ended.
func (w *Worker) holdTime(ctx, parent context.Context) (bool, error) {
	t := w.active
	bounds := timeBounds(w.bounds())
	var write store.Write
	w.settleTime(&write) // of a worker before this one
	if len(bounds) == 0 {
		if len(write.Settle) == 0 {
			return true, nil
		}
		write.Turns = []*store.TurnRow{t.row()}
		return true, w.log.Append(parent, write)
	}
	t.run.Budget.Time = true
	ask := newTimeReserve(bounds, leastSlice)
	write.Reserve, write.Turns = []*store.Reserve{ask}, []*store.TurnRow{t.row()}
	if err := w.commitReserve(ctx, parent, write, ask); err != nil {
		return false, err
	}
	if d := ask.Answer.Denied; d != nil {
		t.run.Budget.Time = false
		if ctx.Err() != nil {
			return true, nil // the loop sees why
		}
		w.deps.Metrics.denied(parent, d)
		return false, w.stop(parent, &budgetTimeError{d})
	}
	w.time.lock()
	defer w.time.unlock()
	w.time.bounds, w.time.since, w.time.length = bounds, time.Now(), ask.Answer.Reserved.WallTime
	return true, nil
}

// timeBounds are the bounds without what asks a person, which happens before a
// model call; none when none of them bounds time.
func timeBounds(bounds []store.Bound) []store.Bound {
	timed := false
	for i := range bounds {
		bounds[i].Soft = store.Amount{}
		timed = timed || bounds[i].Hard.WallTime > 0
	}
	if !timed {
		return nil
	}
	return bounds
}

func newTimeReserve(bounds []store.Bound, least time.Duration) *store.Reserve {
	return &store.Reserve{ID: timeReservation, Bounds: bounds, WallTime: timeSlice, MinWallTime: least}
}

// settleTime settles the time that is reserved: as what was used if this worker
// has reserved it, and else as it was reserved. The write's turn row must be made
// after it, and the write be committed before anything else is reserved.
func (w *Worker) settleTime(write *store.Write) {
	b := &w.active.run.Budget
	if !b.Time {
		return
	}
	b.Time = false
	h := &w.time
	h.lock()
	defer h.unlock()
	s := store.Settle{ID: timeReservation, Unknown: h.length == 0}
	if h.length > 0 {
		s.Used.WallTime = time.Since(h.since)
	}
	h.length = 0
	write.Settle = append(write.Settle, s)
}

// keepTime renews the running turn's time until ctx ends, which is the turn's, or
// nothing is reserved any more. It ends the turn, whose id it gets, when there is
// no time left.
func (w *Worker) keepTime(ctx, parent context.Context, turn string) {
	for {
		w.time.lock()
		wait := w.time.renewal()
		w.time.unlock()
		if wait == 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		d, err := w.renewTime(parent)
		if err != nil {
			return // the log has failed, or the worker has to stop: so does the turn
		}
		if d != nil {
			w.deps.Metrics.denied(parent, d)
			w.cancelRunning(turn, &budgetTimeError{d})
			return
		}
	}
}

// renewal is how long the reservation need not be renewed; 0: there is none.
func (h *timeHeld) renewal() time.Duration {
	if h.length == 0 {
		return 0
	}
	at := h.length
	if at > lastSlice {
		at /= 2
	}
	return max(at-time.Since(h.since), time.Microsecond)
}

// renewTime settles what was used of the reserved time and reserves anew. It tells
// why not, if there is no time left.
func (w *Worker) renewTime(parent context.Context) (*store.Denial, error) {
	h := &w.time
	h.lock()
	defer h.unlock()
	if h.length == 0 {
		return nil, nil //nolint:nilnil // settled meanwhile: there is nothing to renew, and nothing amiss
	}
	now := time.Now()
	ask := newTimeReserve(h.bounds, lastSlice/2)
	err := w.log.Commit(parent, store.Write{
		Settle:  []store.Settle{{ID: timeReservation, Used: store.Amount{WallTime: now.Sub(h.since)}}},
		Reserve: []*store.Reserve{ask},
	})
	if err != nil {
		return nil, err
	}
	h.since, h.length = now, ask.Answer.Reserved.WallTime
	return ask.Answer.Denied, nil
}
