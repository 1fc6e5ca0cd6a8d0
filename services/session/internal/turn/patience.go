package turn

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
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
		return min(idlePatience, w.deps.PeerPatience)
	}
	return w.deps.PeerPatience
}

// patiently repeats do until it is answered: a service that is away for a while, or dies during the request,
// must not fail a turn. It gives up when its patience or ctx ends. It calls tell, if not nil, once when it
// takes long.
func (w *Worker) patiently(ctx context.Context, tell func(error), do func() error) error {
	return w.patientFor(ctx, w.patience(), tell, do)
}

// patientFor is patiently with another patience.
func (w *Worker) patientFor(ctx context.Context, patience time.Duration, tell func(error), do func() error) error {
	begun := time.Now()
	for tries := 0; ; tries++ {
		err := do()
		waited := time.Since(begun)
		if err == nil || !mayRepeat(status.Code(err)) || ctx.Err() != nil || waited > patience {
			return err
		}
		if tell != nil && waited >= tellAfter {
			tell(err)
			tell = nil
		}
		timer := time.NewTimer(min(toolsBackoff<<min(tries/4, 3), patience))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// tellAway returns a function that warns of what the active turn waits for. A
// failed write of the warning shows in the next write.
func (w *Worker) tellAway(ctx context.Context, what string) func(error) {
	if w.active == nil {
		return nil
	}
	return func(err error) {
		w.deps.Log.WarnContext(ctx, "a turn waits for a peer that is away", "session", w.lease.Session, "turn", w.active.id, "error", err)
		e := w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
			Reason:  "PEER_AWAY",
			Message: fmt.Sprintf("%s: %s Waiting for it, for %v at most.", what, explain(err), w.patience()),
		}}})
		_ = w.log.Append(ctx, store.Write{Events: []*sessionv1.Event{e}})
	}
}
