// Package dispatch decides which sessions this replica works on: it claims
// sessions that have work, runs a worker for each, and renews their leases.
//
// The store decides which replica holds a session; this package only asks often
// enough. It asks at once after a notification, otherwise every PollInterval.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn"
	"github.com/fairlead/fairlead/services/session/internal/turn/subagent"
)

// Config configures a replica.
type Config struct {
	Replica      string        // unique among all replicas and all earlier starts
	LeaseTTL     time.Duration // how long a silent replica keeps its sessions
	PollInterval time.Duration
	MaxSessions  int // held at the same time
	MaxPerTenant int // of one tenant; 0: as many as MaxSessions
	// MaxDepth is how deep below a root subagents are. The sessions of each depth have a room of their
	// own, so that turns that wait for their subagents leave room for these.
	MaxDepth int
	// SuspectAt is the number of claims without progress from which on a session
	// is suspect. A replica works on at most one suspect session of each depth at a
	// time; 0: never.
	SuspectAt int
	// JobsWake is called when jobs may be due; it must not block. It may be nil.
	JobsWake func()
}

// renewals is how often leases are renewed within their life. A renewal without an answer is given up before
// the next one: a connection that died silently is noticed only after a long time.
const renewals = 3

const (
	// releaseTimeout bounds the release of a lease when the server stops.
	releaseTimeout = 5 * time.Second
	// releaseBackoff is the wait between two attempts to release a lease.
	releaseBackoff = 250 * time.Millisecond
)

// Dispatcher claims sessions and runs their workers.
type Dispatcher struct {
	config Config
	deps   *turn.Deps
	hub    *hub.Hub
	log    *slog.Logger

	mu       sync.Mutex
	run      context.Context //nolint:containedctx // of Run: the workers' context; nil: Run has not begun, or has ended
	held     map[store.Key]*heldLease
	draining bool // no more claims
	workers  sync.WaitGroup
	look     chan struct{}
	children atomic.Bool // sessions of subagents may be there to claim, too
	// left says that the last look may have left sessions for which there was no room.
	left atomic.Bool
	taking
}

type heldLease struct {
	lease  store.Lease
	depth  int // of a subagent; 0: of none
	worker *turn.Worker
	woken  bool // Dispatcher.mu guards it
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the worker has ended and its lease is released or left
}

// errStopping is why a worker ends in the middle of a step when the server stops.
var errStopping = errors.New("the server is stopping")

// New returns a dispatcher; Run does the work.
func New(c Config, d *turn.Deps, h *hub.Hub, log *slog.Logger) *Dispatcher {
	out := &Dispatcher{config: c, deps: d, hub: h, log: log, held: map[store.Key]*heldLease{}, look: make(chan struct{}, 1), taking: taking{pending: map[string]int{}}}
	out.submitted = sync.NewCond(&out.mu)
	out.children.Store(true)
	return out
}

// Run works until ctx ends, then it stops every worker and releases its lease.
func (d *Dispatcher) Run(ctx context.Context) error {
	wakes, err := d.deps.Store.Listen(ctx)
	if err != nil {
		return fmt.Errorf("listen for work: %w", err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { d.receive(wakes) })
	loops.Go(func() { d.renewAll(ctx) })
	d.admitWorkers(ctx)
	poll := time.NewTicker(d.config.PollInterval)
	defer poll.Stop()
	for ctx.Err() == nil {
		d.claim(ctx)
		select {
		case <-d.look:
		case <-poll.C:
			d.children.Store(true)
		case <-ctx.Done():
		}
	}
	d.refuseWorkers()
	d.workers.Wait()
	loops.Wait()
	return nil
}

// Replica is the name of this replica.
func (d *Dispatcher) Replica() string { return d.config.Replica }

// admitWorkers sets the context of new workers; after refuseWorkers there are no more.
func (d *Dispatcher) admitWorkers(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.run = ctx
}

func (d *Dispatcher) refuseWorkers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.run = nil
}

// Drain stops claiming, lets every worker finish its step, and releases each lease as soon as its worker has
// ended. When ctx ends, it interrupts the current steps. Run goes on renewing leases until its own context
// ends.
func (d *Dispatcher) Drain(ctx context.Context) {
	d.mu.Lock()
	d.draining = true
	held := slices.Collect(maps.Values(d.held))
	d.mu.Unlock()
	for _, h := range held {
		h.worker.Drain()
	}
	defer context.AfterFunc(ctx, func() { // all at once: each release takes time
		for _, h := range held {
			h.cancel(errStopping)
		}
	})()
	for _, h := range held {
		<-h.done
	}
}

// lookSoon makes Run claim again, with children also the sessions of subagents.
func (d *Dispatcher) lookSoon(children bool) {
	if children {
		d.children.Store(true)
	}
	select {
	case d.look <- struct{}{}:
	default:
	}
}

// receive passes wakes on: to the worker of a held session, to followers, and
// all others to Run. It ends when the channel is closed.
func (d *Dispatcher) receive(wakes <-chan store.Wake) {
	for w := range wakes {
		switch w.Kind {
		case store.WakeInbox:
			if h := d.wokenHolder(w.Key); h != nil {
				h.worker.Wake()
			} else {
				d.lookSoon(strings.HasPrefix(w.Session, subagent.Prefix))
			}
		case store.WakeEvents:
			if !d.holds(w.Key) && d.hub.Following(w.Key) {
				d.hub.Publish(w.Key, nil)
			}
		case store.WakeSession:
			d.hub.Changed(w.Key)
		case store.WakeJobs:
			d.wakeJobs()
		case store.WakeLost:
			d.wakeAll()
		}
	}
}

func (d *Dispatcher) wakeJobs() {
	if d.config.JobsWake != nil {
		d.config.JobsWake()
	}
}

func (d *Dispatcher) wakeAll() {
	d.hub.WakeAll()
	d.lookSoon(true)
	d.wakeJobs()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.held {
		h.worker.Wake()
	}
}

func (d *Dispatcher) holds(k store.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held[k] != nil
}

// wokenHolder returns the holding of a session, and notes that its inbox has something: the worker may have looked
// for the last time.
func (d *Dispatcher) wokenHolder(k store.Key) *heldLease {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.held[k]
	if h != nil {
		h.woken = true
	}
	return h
}

// start runs a worker, which Run waits for.
func (d *Dispatcher) start(ctx context.Context, l store.Lease, depth int) {
	ctx, cancel := context.WithCancelCause(ctx)
	worker := turn.New(d.deps, l) //nolint:contextcheck // a worker has the context of its Run
	h := &heldLease{lease: l, depth: depth, worker: worker, cancel: cancel, done: make(chan struct{})}
	d.mu.Lock()
	if d.draining || d.run == nil { // the drain began during the claim
		d.mu.Unlock()
		cancel(nil)
		d.release(ctx, l, "")
		return
	}
	if old := d.held[l.Key]; old != nil {
		// This replica's own older lease has expired.
		old.cancel(store.ErrStaleEpoch)
	}
	d.held[l.Key] = h
	d.workers.Go(func() {
		defer close(h.done)
		defer cancel(nil)
		err := h.worker.Run(ctx)
		d.mu.Lock()
		if d.held[l.Key] == h {
			delete(d.held, l.Key)
		}
		woken := h.woken
		d.mu.Unlock()
		if err != nil {
			d.failed(ctx, h, err)
		}
		// Wakes for events of another holder were ignored while this replica held
		// the session. The events of a commit whose answer was lost were not
		// published.
		d.hub.Publish(l.Key, nil)
		// A command may have come after the worker's last look. Another session may have waited for the room.
		if err != nil || woken || depth > 0 || l.Suspect || d.config.MaxPerTenant > 0 || d.left.Load() {
			d.lookSoon(depth > 0)
		}
	})
	d.mu.Unlock()
}

// failed handles the lease of a worker that has failed. A worker that was asked to stop, or whose database
// was away, releases it, so that another replica continues at once; this does not count against the turn. So
// does a worker that met a newer version's command, a little later. A worker that failed for another reason
// keeps the lease until it expires: a pause before the next attempt. After the last attempt of its turn, the
// session is abandoned instead.
func (d *Dispatcher) failed(ctx context.Context, h *heldLease, err error) {
	l := h.lease
	var passed *turn.PassOnError
	switch {
	case errors.Is(err, store.ErrStaleEpoch) || errors.Is(context.Cause(ctx), store.ErrStaleEpoch):
		d.log.InfoContext(ctx, "another replica holds the session now", "session", l.Session, "tenant", l.Tenant)
	case errors.As(err, &passed):
		d.release(ctx, l, passed.Replica)
	case errors.Is(err, turn.ErrHandOver) || ctx.Err() != nil:
		d.release(ctx, l, "")
	case errors.Is(err, store.ErrUnavailable):
		d.log.WarnContext(ctx, "the database cannot be reached; the session resumes when it is back", "session", l.Session, "tenant", l.Tenant, "error", err)
		d.release(ctx, l, "")
	case errors.Is(err, turn.ErrUnknownCommand):
		d.log.WarnContext(ctx, "the session needs a newer version; leaving it to another replica", "session", l.Session, "tenant", l.Tenant, "error", err)
		d.leave(ctx, l)
	case h.worker.Stuck():
		d.log.ErrorContext(ctx, "worker failed again; giving up the session's work", "session", l.Session, "tenant", l.Tenant, "error", err)
		if err := d.abandon(ctx, h); err != nil {
			d.log.ErrorContext(ctx, "cannot record that the session's work is given up; the session is claimed again when its lease ends", "session", l.Session, "tenant", l.Tenant, "error", err)
		}
	default:
		d.log.ErrorContext(ctx, "worker failed; the session is claimed again when its lease ends", "session", l.Session, "tenant", l.Tenant, "error", err)
	}
}

// abandon abandons a session, within the time of its lease.
func (d *Dispatcher) abandon(ctx context.Context, h *heldLease) error {
	ctx, cancel := context.WithTimeout(ctx, d.config.LeaseTTL)
	defer cancel()
	return h.worker.Abandon(ctx)
}

// leave releases a lease after a while, in which this replica does not claim the session
// again.
func (d *Dispatcher) leave(ctx context.Context, l store.Lease) {
	pause := time.NewTimer(d.config.LeaseTTL / 2)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	d.release(ctx, l, "")
}

// release releases a lease, and retries for a while if the database is away. A lease that cannot be released
// expires. to, if not empty, is the replica that goes on.
func (d *Dispatcher) release(ctx context.Context, l store.Lease, to string) {
	patience := d.config.LeaseTTL
	if ctx.Err() != nil { // the server stops and waits
		patience = min(patience, releaseTimeout)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for {
		err := d.giveUp(ctx, l, to)
		if err == nil || errors.Is(err, store.ErrStaleEpoch) {
			return
		}
		timer := time.NewTimer(releaseBackoff)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			d.log.WarnContext(ctx, "cannot release a lease; it expires by itself", "session", l.Session, "tenant", l.Tenant, "error", err)
			return
		}
	}
}

// passWithin is how long a session that was passed on waits for its replica. Then any replica goes on.
const passWithin = 3 * time.Second

func (d *Dispatcher) giveUp(ctx context.Context, l store.Lease, to string) error {
	if to == "" {
		return d.deps.Store.Release(ctx, l)
	}
	return d.deps.Store.PassOn(ctx, l, to, passWithin)
}

// renewAll extends all leases, several times within their life.
func (d *Dispatcher) renewAll(ctx context.Context) {
	tick := time.NewTicker(d.config.LeaseTTL / renewals)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.renew(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (d *Dispatcher) renew(ctx context.Context) {
	d.mu.Lock()
	leases := make([]store.Lease, 0, len(d.held))
	asked := make(map[store.Key]*heldLease, len(d.held))
	for k, h := range d.held {
		leases = append(leases, h.lease)
		asked[k] = h
	}
	d.mu.Unlock()
	if len(leases) == 0 {
		return
	}
	asking, cancel := context.WithTimeout(ctx, d.config.LeaseTTL/renewals)
	defer cancel()
	lost, err := d.deps.Store.Renew(asking, leases, d.config.LeaseTTL)
	if err != nil && ctx.Err() == nil {
		d.log.WarnContext(ctx, "cannot renew all leases; will try again", "sessions", len(leases), "error", err)
	}
	for _, k := range lost {
		// The session may have been claimed again meanwhile, for a worker with a
		// valid lease: only the holding of this renewal has lost its lease.
		if h := asked[k]; h != nil {
			h.cancel(store.ErrStaleEpoch)
		}
	}
}
