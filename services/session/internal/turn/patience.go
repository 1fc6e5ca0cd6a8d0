package turn

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// A tools or sandbox service that cannot be reached has not answered: the turn has not
// failed, and no call is lost. So the turn waits for it, as long as its own time, an
// interrupt and the operator's PeerPatience allow.

const (
	// idlePatience is how long the worker waits for a peer between turns, where the
	// requester waits, too.
	idlePatience = time.Minute
	// tellAfter is the time after which people learn what the turn waits for.
	tellAfter = 2 * time.Second
)

// patience returns how long the worker waits for a peer that is away.
func (w *Worker) patience() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn == "" {
		return min(idlePatience, w.PeerPatience)
	}
	return w.PeerPatience
}

// patiently repeats do until it is answered: a service that is away for a while, or dies during the request,
// must not fail a turn. It gives up when its patience or ctx ends. It calls tell, if not nil, once when it
// takes long.
func (w *Worker) patiently(ctx context.Context, tell func(error), do func() error) error {
	return w.scope(ctx, ctx).Patiently(tell, do)
}

// patientFor is patiently with another patience.
func (w *Worker) patientFor(ctx context.Context, patience time.Duration, tell func(error), do func() error) error {
	return w.scope(ctx, ctx).PatientFor(patience, tell, do)
}

// tellAway returns a function that warns of what the active turn waits for.
func (w *Worker) tellAway(ctx context.Context, what string) func(error) {
	return w.scope(ctx, ctx).WarnAway(what)
}

// scope returns the scope of a piece of work.
func (w *Worker) scope(ctx, parent context.Context) state.Scope {
	w.mu.Lock()
	defer w.mu.Unlock()
	sc := state.Idle(parent, w.Session)
	if w.turn == "" {
		return sc.With(ctx)
	}
	return sc.InTurn(ctx)
}
