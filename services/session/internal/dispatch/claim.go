package dispatch

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// claim takes as many sessions as there is room for.
func (d *Dispatcher) claim(ctx context.Context) {
	deepest := 0
	if d.children.Swap(false) {
		deepest = d.config.MaxDepth
	}
	for depth := range deepest + 1 {
		d.claimAt(ctx, depth)
	}
}

// claimAt takes sessions of one depth.
func (d *Dispatcher) claimAt(ctx context.Context, depth int) {
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
		return
	}
	leases, err := d.ask(ctx, store.Claim{
		Replica: d.config.Replica, Limit: room, TTL: d.config.LeaseTTL, TenantLimit: d.config.MaxPerTenant, Held: held,
		SuspectAt: d.config.SuspectAt, Suspects: suspects, Depth: depth,
	})
	if err != nil {
		if ctx.Err() == nil {
			d.log.WarnContext(ctx, "cannot claim sessions; will try again", "error", err)
		}
		return
	}
	for _, l := range leases {
		if l.Suspect {
			d.log.WarnContext(ctx, "a turn may have crashed its replicas; it gets one last attempt, without another such turn beside it", "session", l.Session, "tenant", l.Tenant)
		}
		d.start(ctx, l, depth)
	}
}

// ask claims, but does not wait for the answer longer than the leases last.
func (d *Dispatcher) ask(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.TTL)
	defer cancel()
	return d.deps.Store.Claim(ctx, c)
}
