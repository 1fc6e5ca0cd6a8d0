package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// testTaking submits a command with a claim.
func testTaking(t *testing.T, open func(t *testing.T) store.Store) {
	taking := func(k store.Key, id string, ttl time.Duration) store.Submit {
		n := newTurn(k, id)
		n.Claim = &store.Claimer{Replica: "r1", TTL: ttl}
		return n
	}

	t.Run("who submits to an idle session holds it", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		n := taking(k, "t1", time.Hour)
		n.Request = request("a")
		a, err := f.Submit(f.ctx(), n)
		f.must(err)
		if a.Value != "t1" || a.Lease == nil || *a.Lease != (store.Lease{Key: k, Epoch: 1, Claims: 1}) {
			t.Fatalf("answer %+v, lease %+v", a, a.Lease)
		}
		f.claimsNothing(k)
		if got := f.inbox(*a.Lease); len(got) != 1 || got[0].TurnID != "t1" {
			t.Errorf("the inbox has %v", got)
		}
		snap, err := f.Load(f.ctx(), *a.Lease)
		f.must(err)
		if snap.Claims != 1 {
			t.Errorf("claimed %d times", snap.Claims)
		}
		again, err := f.Submit(f.ctx(), n)
		f.must(err)
		if !again.Replayed || again.Lease != nil {
			t.Errorf("the repeated request was answered with %+v", again)
		}
		f.commit(start(*a.Lease, "t1", f.inbox(*a.Lease)...))
		f.commit(finish(*a.Lease, "t1"))
		released, err := f.ReleaseIdle(f.ctx(), *a.Lease)
		if err != nil || !released {
			t.Fatalf("released %v, %v", released, err)
		}
		next, err := f.Submit(f.ctx(), taking(k, "t2", time.Hour))
		f.must(err)
		if next.Lease == nil || next.Lease.Epoch != 2 || next.Lease.FenceDue {
			t.Errorf("lease %+v", next.Lease)
		}
		if _, err := f.Inbox(f.ctx(), *a.Lease); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("the former lease: %v", err)
		}
	})

	t.Run("a lease that was taken this way expires like any other", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		a, err := f.Submit(f.ctx(), taking(k, "t1", time.Millisecond))
		f.must(err)
		l := f.claimUntil(store.Claim{Replica: "r2", TTL: time.Hour, Only: []store.Key{k}})
		if a.Lease == nil || len(l) != 1 || l[0].Epoch != a.Lease.Epoch+1 || !l[0].FenceDue || l[0].Claims != 2 {
			t.Errorf("claimed %+v after %+v", l, a.Lease)
		}
	})

	for _, c := range []struct {
		name string
		make func(f *fixture, k store.Key)
	}{
		{"is held", func(f *fixture, k store.Key) { f.submitTurn(k, "t0"); f.claim(k) }},
		{"has other work", func(f *fixture, k store.Key) { f.submitTurn(k, "t0") }},
		{"was left by a holder that must be fenced", func(f *fixture, k store.Key) {
			f.submitTurn(k, "t0")
			f.lapse(f.claim(k))
			f.must(f.Release(f.ctx(), f.claim(k)))
		}},
		{"was promised to another replica", func(f *fixture, k store.Key) {
			f.submitTurn(k, "t0")
			f.must(f.PassOn(f.ctx(), f.claim(k), "r2", time.Hour))
		}},
	} {
		t.Run("a command takes no session that "+c.name, func(t *testing.T) {
			f := newFixture(t, open)
			k := f.create(key("s1"))
			c.make(f, k)
			wakes := f.listen()
			a, err := f.Submit(f.ctx(), taking(k, "t1", time.Hour))
			f.must(err)
			if a.Lease != nil {
				t.Errorf("took it: %+v", a.Lease)
			}
			f.awaitWake(wakes, store.Wake{Key: k, Kind: store.WakeInbox})
		})
	}
}
