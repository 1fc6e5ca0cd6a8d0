package integration

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// hanging is a store whose first claim and first renewal get no answer, as of a
// connection to the database that died without a word.
type hanging struct {
	store.Store
	claims, renewals atomic.Int32
	renewed          chan struct{} // closed by the second renewal
}

func (h *hanging) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	if h.claims.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Store.Claim(ctx, c)
}

func (h *hanging) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Key, error) {
	switch h.renewals.Add(1) {
	case 1:
		<-ctx.Done()
		return nil, ctx.Err()
	case 2:
		close(h.renewed)
	}
	return h.Store.Renew(ctx, leases, ttl)
}

// TestARequestThatHangsHoldsUpNoOtherClaimAndNoOtherRenewal: the replica would
// hold nothing any more until the connection is found to be dead.
func TestARequestThatHangsHoldsUpNoOtherClaimAndNoOtherRenewal(t *testing.T) {
	t.Parallel()
	db := &hanging{renewed: make(chan struct{})}
	wrap := func(s store.Store) store.Store {
		db.Store = s
		return db
	}
	f := startOn(t, wrap, twoSteps, func(c *session.Config) { c.LeaseTTL = 3 * time.Second })
	ctx := t.Context()
	turn := f.create(ctx, t, f.session(ctx, t), "work")
	for name, happened := range map[string]func() bool{
		"another claim": func() bool {
			select {
			case call := <-f.peers.blocked:
				f.peers.blocked <- call
				return true
			default:
				return false
			}
		},
		"another renewal": func() bool {
			select {
			case <-db.renewed:
				return true
			default:
				return false
			}
		},
	} {
		eventually(t, name, happened)
	}
	f.peers.release(<-f.peers.blocked)
	f.waitForEnd(ctx, t, turn.Name)
}
