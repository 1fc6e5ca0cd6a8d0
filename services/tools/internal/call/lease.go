package call

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// renewals is how often a lease is renewed within its time.
const renewals = 3

// maxPause is the longest pause between two reads of a call of another replica
// that cannot be asked for it.
const maxPause = 200 * time.Millisecond

// errWait says that another replica has the call: the caller should wait until
// the call or its owner's lease has ended.
var errWait = errors.New("another replica has the call")

// Run renews the leases of this replica's calls until ctx ends. It releases the
// calls whose lease it has lost.
func (e *Engine) Run(ctx context.Context) {
	tick := time.NewTicker(e.Lease / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.renew(ctx)
		}
	}
}

func (e *Engine) renew(ctx context.Context) {
	held, runs := e.held()
	if len(held) == 0 {
		return
	}
	// A database that hangs must not delay the next attempt.
	ctx, cancel := context.WithTimeout(ctx, e.Lease)
	defer cancel()
	gone, err := e.Store.Renew(ctx, e.Self.ID, e.Lease, held)
	if err != nil {
		e.Log.WarnContext(ctx, "leases of calls not renewed", "calls", len(held), "error", err.Error())
		return
	}
	for _, h := range gone {
		// Cancelling a run that has ended meanwhile has no effect.
		runs[h].cancel(tool.ErrTakenOver)
	}
}

// held lists the runs that the journal knows.
func (e *Engine) held() ([]store.Held, map[store.Held]*run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	held, runs := make([]store.Held, 0, len(e.running)), make(map[store.Held]*run, len(e.running))
	for k, r := range e.running {
		if claim := r.claim.Load(); claim > 0 {
			h := store.Held{Tenant: k.tenant, CallID: k.callID, Claim: claim, Begun: r.begun.Load()}
			held, runs[h] = append(held, h), r
		}
	}
	return held, runs
}

// isElsewhere reports whether another replica makes a call and can be asked for
// it.
func (e *Engine) isElsewhere(rec store.Record) bool {
	return rec.Live && rec.Owner.ID != e.Self.ID && rec.Owner.Address != "" && e.Peers != nil
}

// elsewhere follows a call at the replica that makes it. If that replica does
// not answer, or loses the call, the journal is read again.
func (a *attempt) elsewhere(ctx context.Context) error {
	if a.Forwarded {
		return ErrReplicaUnavailable // the forwarding replica has read an older journal
	}
	if !a.isElsewhere(a.rec) {
		return errWait
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() { // a stopped replica never answers
		defer close(watched)
		a.watch(ctx, cancel)
	}()
	err := a.Peers.Call(ctx, a.rec.Owner.Address, a.Request, a.send)
	cause := context.Cause(ctx)
	cancel(nil)
	<-watched
	switch {
	case err == nil:
		return nil
	case cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded):
		return cause
	case errors.Is(err, ErrReplicaUnavailable):
		return errWait
	default:
		return err
	}
}

// watch stops following another replica when that replica has lost the lease of
// the call.
func (a *attempt) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(a.Lease / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		rec, err := a.Store.Enter(ctx, a.Ref)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrStaleEpoch):
			cancel(err)
			return
		case err == nil && (rec.State != store.Started || rec.Claim != a.rec.Claim || !rec.Live):
			cancel(errWait)
			return
		}
	}
}

// lost reports whether an error means that another replica has the call now, as
// the journal says.
func lost(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, tool.ErrTakenOver)
}

// retry reads a call and acts on it. It repeats both after a lost race, and
// while another replica has the call, for as long as a lease may take to end.
func (e *Engine) retry(ctx context.Context, ref store.Ref, act func(store.Record) error) error {
	var deadline time.Time
	for races := 0; races < maxRaces; {
		begin := e.Now()
		rec, err := e.Store.Enter(ctx, ref)
		if err != nil {
			return err
		}
		err = act(rec)
		now := e.Now()
		if deadline.IsZero() || now.Sub(begin) > e.Lease/renewals { // it was followed for a while
			deadline = now.Add(2 * e.Lease)
		}
		switch {
		case lost(err):
			races++
		case !errors.Is(err, errWait):
			return err
		case now.After(deadline):
			return ErrReplicaUnavailable
		default:
			if err := pause(ctx, min(e.Lease/10, maxPause)); err != nil {
				return err
			}
		}
	}
	return errors.New("the call's state changed too often while it was read")
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
