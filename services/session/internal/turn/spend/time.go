package spend

import (
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// A turn reserves its running time in slices where a budget bounds time: the first
// before the turn does anything, the next ones while it runs. A slice is renewed
// at its half: the used part is settled, and a new slice is reserved from there
// on, as long as the budget allows. So the turn always holds the time until its
// next renewal, and slices get shorter as a budget nears its end.
const (
	// timeSlice is longer than a lease lasts: a holder that cannot renew its slice
	// loses the session first.
	timeSlice = 20 * time.Second
	// leastSlice is the least to begin with, unless it is all that the budget has.
	leastSlice = time.Second
	// lastSlice is not renewed at its half, but at its end.
	lastSlice = 200 * time.Millisecond
	// timeReservation is the id of a session's reservation of time. Only one turn
	// of a session runs at a time, so the next worker finds what the one before it
	// has reserved.
	timeReservation = "time"
)

// timeHeld is the time that the running turn has reserved.
type timeHeld struct {
	// mu is held while the reservation is renewed: a settlement comes before or after.
	// It is a channel because synctest counts the wait for a mutex as work, and its
	// clock stands still then; here that wait lasts as long as a commit.
	mu     chan struct{}
	bounds []store.Bound
	since  time.Time     // from when on it counts
	length time.Duration // 0: none is reserved
}

func newTimeHeld() timeHeld { return timeHeld{mu: make(chan struct{}, 1)} }

func (h *timeHeld) lock()   { h.mu <- struct{}{} }
func (h *timeHeld) unlock() { <-h.mu }

// Hold reserves the turn's first slice of time, where a budget bounds time, and waits for it. A
// subagent's turn reserves none: the time of the turn for which it works runs meanwhile.
func (s *Spend) Hold(sc state.Scope) (state.Outcome, error) {
	t := sc.Active
	if sc.IsSubagent() {
		return state.Outcome{}, nil
	}
	bounds := timeBounds(s.bounds(sc))
	var write store.Write
	s.SettleTime(t, &write) // of a worker before this one
	if len(bounds) == 0 {
		if len(write.Settle) == 0 {
			return state.Outcome{}, nil
		}
		write.Turns = []*store.TurnRow{t.Row()}
		return state.Outcome{}, sc.Append(write)
	}
	t.Run.Budget.Time = true
	ask := newTimeReserve(bounds, leastSlice)
	write.Reserve, write.Turns = []*store.Reserve{ask}, []*store.TurnRow{t.Row()}
	if err := s.commitReserve(sc, write, ask); err != nil {
		return state.Outcome{}, err
	}
	if d := ask.Answer.Denied; d != nil {
		t.Run.Budget.Time = false
		if sc.Ended() {
			return state.Outcome{}, nil // the loop finds the cause
		}
		s.Telemetry.Denied(sc.Outlasting(), d)
		return state.Interrupted(store.Write{}, &TimeError{d}), nil
	}
	s.time.lock()
	defer s.time.unlock()
	s.time.bounds, s.time.since, s.time.length = bounds, time.Now(), ask.Answer.Reserved.WallTime
	return state.Outcome{}, nil
}

// timeBounds returns the bounds of time, without soft parts: a person is asked
// before a model call instead. It returns nothing when no bound limits time.
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

// SettleTime settles the reserved time: as the used time if this worker has
// reserved it, otherwise as reserved. The caller makes the write's turn row after
// this call, and commits the write before anything else is reserved.
func (s *Spend) SettleTime(t *state.Turn, write *store.Write) {
	b := &t.Run.Budget
	if !b.Time {
		return
	}
	b.Time = false
	h := &s.time
	h.lock()
	defer h.unlock()
	settle := store.Settle{ID: timeReservation, Unknown: h.length == 0}
	if h.length > 0 {
		settle.Used.WallTime = time.Since(h.since)
	}
	h.length = 0
	write.Settle = append(write.Settle, settle)
}

// Keep renews the running turn's time until the scope ends or nothing is reserved any more. It
// calls stop with a *TimeError when no time is left.
func (s *Spend) Keep(sc state.Scope, stop func(error)) {
	for {
		s.time.lock()
		wait := s.time.renewal()
		s.time.unlock()
		if wait == 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-sc.Done():
			timer.Stop()
			return
		}
		d, err := s.renewTime(sc)
		if err != nil {
			return // the log has failed or the worker must stop, and the turn stops with it
		}
		if d != nil {
			s.Telemetry.Denied(sc.Outlasting(), d)
			stop(&TimeError{d})
			return
		}
	}
}

// renewal returns how long the reservation needs no renewal; 0: nothing is
// reserved.
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

// renewTime settles the used part of the reserved time and reserves anew. It
// returns the denial if no time is left.
func (s *Spend) renewTime(sc state.Scope) (*store.Denial, error) {
	h := &s.time
	h.lock()
	defer h.unlock()
	if h.length == 0 {
		return nil, nil //nolint:nilnil // settled meanwhile: there is nothing to renew, and nothing amiss
	}
	now := time.Now()
	ask := newTimeReserve(h.bounds, lastSlice/2)
	err := sc.Commit(store.Write{
		Settle:  []store.Settle{{ID: timeReservation, Used: store.Amount{WallTime: now.Sub(h.since)}}},
		Reserve: []*store.Reserve{ask},
	})
	if err != nil {
		return nil, err
	}
	h.since, h.length = now, ask.Answer.Reserved.WallTime
	return ask.Answer.Denied, nil
}
