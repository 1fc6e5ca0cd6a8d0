package dispatch

import (
	"context"
	"sync"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// taking keeps the two ways in which this replica takes sessions apart, so that it takes no more than it may: a
// claim alone, or any number of submissions that take a session each. Dispatcher.mu guards it.
type taking struct {
	claiming   bool // a claim runs, or waits for the submissions to end
	submitting int
	submitted  *sync.Cond     // the last submission has ended
	pending    map[string]int // submissions that may take a session, by tenant
}

// Submit puts a command into an inbox. If the session is idle and there is room, this replica takes it in the same
// commit, which saves the turn the commit of a claim.
func (d *Dispatcher) Submit(ctx context.Context, n store.Submit) (store.Answer, error) {
	if !d.beginSubmit() {
		return d.deps.Store.Submit(ctx, n)
	}
	defer d.endSubmit()
	run := d.makeRoom(n.Tenant)
	if run == nil {
		return d.deps.Store.Submit(ctx, n)
	}
	defer d.countPending(n.Tenant, -1)
	n.Claim = &store.Claimer{Replica: d.config.Replica, TTL: d.config.LeaseTTL}
	// A caller that goes away must not leave a lease behind that this replica does not know of.
	submitting, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.config.LeaseTTL)
	defer cancel()
	answer, err := d.deps.Store.Submit(submitting, n)
	if err == nil && answer.Lease != nil {
		d.start(run, *answer.Lease, 0) //nolint:contextcheck // the worker outlives the request
	}
	return answer, err
}

// beginSubmit begins a submission that may take a session, unless a claim runs or waits to.
func (d *Dispatcher) beginSubmit() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claiming {
		return false
	}
	d.submitting++
	return true
}

func (d *Dispatcher) endSubmit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.submitting--; d.submitting == 0 {
		d.submitted.Signal()
	}
}

// beginClaim keeps new submissions from taking sessions, and waits for those that may.
func (d *Dispatcher) beginClaim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.claiming = true; d.submitting > 0; {
		d.submitted.Wait()
	}
}

func (d *Dispatcher) endClaim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claiming = false
}

// makeRoom returns the context of a worker for another session of a tenant, nil if there is no room for one or another
// session waits for it.
func (d *Dispatcher) makeRoom(tenant string) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	room, ofTenant := d.config.MaxSessions, d.config.MaxPerTenant
	for k, h := range d.held {
		if h.depth == 0 {
			room--
			if k.Tenant == tenant {
				ofTenant--
			}
		}
	}
	for t, n := range d.pending {
		room -= n
		if t == tenant {
			ofTenant -= n
		}
	}
	if d.draining || d.left.Load() || room <= 0 || d.config.MaxPerTenant > 0 && ofTenant <= 0 {
		return nil
	}
	if d.run != nil {
		d.pending[tenant]++
	}
	return d.run
}

func (d *Dispatcher) countPending(tenant string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[tenant] += n; d.pending[tenant] == 0 {
		delete(d.pending, tenant)
	}
}

// claim takes as many sessions as there is room for.
func (d *Dispatcher) claim(ctx context.Context) {
	d.beginClaim()
	defer d.endClaim()
	d.left.Store(true) // a worker that ends from here on makes room that this look does not know of
	if left := d.claimAll(ctx); !left {
		d.left.Store(false)
	}
}

// claimAll claims at every depth. It reports whether there may be more sessions than there was room for.
func (d *Dispatcher) claimAll(ctx context.Context) (left bool) {
	deepest := 0
	if d.children.Swap(false) {
		deepest = d.config.MaxDepth
	}
	for depth := range deepest + 1 {
		left = d.claimAt(ctx, depth) || left
	}
	return left
}

// claimAt takes sessions of one depth. It reports whether there may be more than there was room for.
func (d *Dispatcher) claimAt(ctx context.Context, depth int) (left bool) {
	d.mu.Lock()
	room := d.config.MaxSessions
	if d.draining {
		room = 0
	}
	held, suspects := map[string]int{}, 1
	for k, h := range d.held {
		if h.depth != depth {
			continue
		}
		if h.worker.Suspect() { // one of another depth may wait for one of this depth
			suspects = 0
		}
		room--
		if d.config.MaxPerTenant > 0 {
			held[k.Tenant]++
		}
	}
	d.mu.Unlock()
	if room <= 0 {
		return true
	}
	leases, err := d.claimInTime(ctx, store.Claim{
		Replica: d.config.Replica, Limit: room, TTL: d.config.LeaseTTL, TenantLimit: d.config.MaxPerTenant, Held: held,
		SuspectAt: d.config.SuspectAt, Suspects: suspects, Depth: depth,
	})
	if err != nil {
		if ctx.Err() == nil {
			d.log.WarnContext(ctx, "cannot claim sessions; will try again", "error", err)
		}
		return true
	}
	for _, l := range leases {
		if l.Suspect {
			d.log.WarnContext(ctx, "a turn may have crashed its replicas; it gets one last attempt, without another such turn beside it", "session", l.Session, "tenant", l.Tenant)
		}
		d.start(ctx, l, depth)
	}
	return len(leases) >= room || suspects == 0
}

// claimInTime claims, but does not wait for the answer longer than the leases last.
func (d *Dispatcher) claimInTime(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.TTL)
	defer cancel()
	return d.deps.Store.Claim(ctx, c)
}
