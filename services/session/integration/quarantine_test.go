package integration

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// dying is a store whose claimers die, each with all that it has claimed, until
// every turn has one claim left. Then it watches who is claimed.
type dying struct {
	store.Store
	deaths   int
	released chan struct{} // a token for each session without work

	mu     sync.Mutex
	claim  func(ctx context.Context, c store.Claim) ([]store.Lease, error)
	claims map[store.Key]int // whose claimers died
	held   []store.Key       // claimed since
	most   int               // of these at one time, before they got further
}

func (d *dying) ReleaseIdle(ctx context.Context, l store.Lease) (bool, error) {
	released, err := d.Store.ReleaseIdle(ctx, l)
	if released {
		d.released <- struct{}{}
	}
	return released, err
}

func (d *dying) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.claim(ctx, c)
}

func (d *dying) none(context.Context, store.Claim) ([]store.Lease, error) { return nil, nil }

// die claims all remaining work and does not work on it.
func (d *dying) die(ctx context.Context, _ store.Claim) ([]store.Lease, error) {
	var left []store.Key
	for k, n := range d.claims {
		if n < d.deaths {
			left = append(left, k)
		}
	}
	leases, err := d.Store.Claim(ctx, store.Claim{TTL: time.Microsecond, Only: left})
	for _, l := range leases {
		d.claims[l.Key]++
	}
	return nil, err
}

// dead tells whether every turn has one claim left.
func (d *dying) dead() bool {
	for _, n := range d.claims {
		if n < d.deaths {
			return false
		}
	}
	return true
}

func (d *dying) set(claim func(context.Context, store.Claim) ([]store.Lease, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claim = claim
}

// TestTurnsThatWereHeldBesideOneThatKillsItsHoldersHaveTheirLastTryAlone has the
// holders of several turns die as often as they may without the turns getting
// further. Any of the turns may be to blame, so each is tried without the others.
func TestTurnsThatWereHeldBesideOneThatKillsItsHoldersHaveTheirLastTryAlone(t *testing.T) {
	t.Parallel()
	const turns = 3
	d := &dying{released: make(chan struct{}, 10*turns), claims: map[store.Key]int{}, deaths: session.Defaults().MaxClaims - 1}
	wrap := func(s store.Store) store.Store {
		d.Store, d.claim = s, s.Claim
		return d
	}
	f := startOn(t, wrap, asking)
	ctx := t.Context()
	asked := map[store.Key]*sessionv1.ApprovalRequested{} // the calls that bring the turns further
	var names []string
	for range turns {
		s := f.session(ctx, t)
		names = append(names, f.create(ctx, t, s, "write").Name)
		k := store.Key{Tenant: "default", Session: strings.TrimPrefix(s, "sessions/")}
		asked[k] = f.waitForAsk(ctx, t, s)
		<-d.released // it waits, and has no holder
	}
	d.set(d.none)
	for k, ask := range asked {
		d.claims[k] = 0
		if _, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: "sessions/" + k.Session, CallId: ask.CallId, Digest: ask.Digest, Approved: true}); err != nil {
			t.Fatal(err)
		}
	}
	d.set(func(ctx context.Context, c store.Claim) ([]store.Lease, error) {
		if !d.dead() {
			return d.die(ctx, c)
		}
		leases, err := d.Store.Claim(ctx, c)
		for _, l := range leases {
			d.held = append(d.held, l.Key)
		}
		f.peers.mu.Lock()
		defer f.peers.mu.Unlock()
		n := 0
		for _, k := range d.held {
			if f.peers.executed[asked[k].CallId] == 0 {
				n++
			}
		}
		d.most = max(d.most, n)
		return leases, err
	})
	for _, name := range names {
		if end := f.waitForEnd(ctx, t, name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
			t.Errorf("turn %s ended %v", name, end)
		}
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if d.most != 1 {
		t.Errorf("%d turns were taken up together for their last try", d.most)
	}
}
