package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// idlePatience is how long the worker waits for a peer between turns, where the
	// requester waits, too.
	idlePatience = time.Minute
	// warnAfter is the time after which people learn what the turn waits for.
	warnAfter = 2 * time.Second
	// PeerBackoff is the wait before a peer that is away is asked again.
	PeerBackoff = 500 * time.Millisecond
)

// Scope is where a piece of work of a session belongs. Its context is the work's own: inside of a
// turn it ends with the turn. The worker's context outlives it, so that what has happened is
// recorded although the turn stops.
type Scope struct {
	context.Context                 //nolint:containedctx // a scope is the context of one piece of work and is passed like one
	worker          context.Context //nolint:containedctx // outlives the turn's
	patience        time.Duration   // for a peer that is away
	runtime         string          // of the turn; "" outside of one
	*Session
}

// Idle returns the scope of work outside of a turn. ctx is the worker's.
func Idle(ctx context.Context, s *Session) Scope {
	return Scope{Context: ctx, worker: ctx, patience: min(idlePatience, s.PeerPatience), Session: s}
}

// InTurn returns the scope of work of a running turn. ctx ends with the turn.
func (sc Scope) InTurn(ctx context.Context) Scope {
	sc.Context, sc.patience, sc.runtime = ctx, sc.PeerPatience, sc.Active.Run.Runtime
	return sc
}

// With returns the same scope for a part of the work. ctx derives from the scope.
func (sc Scope) With(ctx context.Context) Scope {
	sc.Context = ctx
	return sc
}

// Outlasting returns the same scope with the worker's context, for work that must not end with the turn.
func (sc Scope) Outlasting() Scope { return sc.With(sc.worker) }

// As returns the same scope with user as the acting user.
func (sc Scope) As(user string) Scope {
	return sc.With(principal.With(sc.Context, principal.Service(sc.Lease.Tenant, user)))
}

// Ended reports whether the work must stop.
func (sc Scope) Ended() bool { return sc.Err() != nil }

// WorkerErr returns why the worker must stop, or nil.
func (sc Scope) WorkerErr() error {
	if sc.worker.Err() == nil {
		return nil
	}
	return context.Cause(sc.worker)
}

// Emit appends under the work's context. Use it for what nothing depends on.
func (sc Scope) Emit(write store.Write) error { return sc.Log.Append(sc.Context, write) }

// Append appends to the log under the worker's context.
func (sc Scope) Append(write store.Write) error { return sc.Log.Append(sc.worker, write) }

// Commit appends to the log and waits for the commit, under the worker's context.
func (sc Scope) Commit(write store.Write) error { return sc.Log.Commit(sc.worker, write) }

// Flush waits until all that was appended is committed, under the worker's context.
func (sc Scope) Flush() error { return sc.Log.Flush(sc.worker) }

// Patiently repeats do until it is answered. A tools or sandbox service that cannot be reached has
// not answered: the turn has not failed, and no call is lost. Patiently gives up when the
// patience or the scope's context ends. It calls warn, if not nil, once when it takes long.
func (sc Scope) Patiently(warn func(error), do func() error) error {
	return sc.PatientFor(sc.patience, warn, do)
}

// PatientFor is Patiently with another patience.
func (sc Scope) PatientFor(patience time.Duration, warn func(error), do func() error) error {
	begun := time.Now()
	for tries := 0; ; tries++ {
		err := do()
		waited := time.Since(begun)
		if err == nil || !MayRepeat(err) || sc.Ended() || waited > patience {
			return err
		}
		if warn != nil && waited >= warnAfter {
			warn(err)
			warn = nil
		}
		timer := time.NewTimer(min(PeerBackoff<<min(tries/4, 3), patience))
		select {
		case <-timer.C:
		case <-sc.Done():
			timer.Stop()
			return context.Cause(sc)
		}
	}
}

// WarnAway returns a function that warns of what the active turn waits for; nil outside of a
// turn. A failed write of the warning shows in the next write.
func (sc Scope) WarnAway(what string) func(error) {
	if sc.Active == nil {
		return nil
	}
	return func(err error) {
		sc.Logger.WarnContext(sc, "a turn waits for a peer that cannot be reached", "session", sc.Lease.Session, "turn", sc.Active.ID, "error", err)
		e := sc.StepEvent(Warning("PEER_AWAY", fmt.Sprintf("%s: %s Waiting for it, for %v at most.", what, Explain(err), sc.patience)))
		_ = sc.Emit(store.Write{Events: []*sessionv1.Event{e}})
	}
}

// MayRepeat reports whether an RPC failed and not what it asked for: a repeated request with the
// same call id returns the result, or does the work if it never started.
func MayRepeat(err error) bool {
	return errors.Is(err, remote.ErrUnavailable) || errors.Is(err, remote.ErrAborted)
}

// RuntimeName returns what drives the scope's turn, and outside of one the agent's runtime. Unlike the active turn it
// may be read while the worker goes on.
func (sc Scope) RuntimeName() string { return cmp.Or(sc.runtime, sc.Spec.RuntimeName()) }
