package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// testFenceDue checks which holder must tell tools and the sandbox of a
// takeover.
func testFenceDue(t *testing.T, open func(t *testing.T) store.Store) {
	silent := store.Claim{Replica: "silent", TTL: time.Millisecond, Limit: 1}
	next := store.Claim{Replica: "next", TTL: time.Hour, Limit: 1}
	claim := func(f *fixture, c store.Claim, due bool) store.Lease {
		f.Helper()
		l := f.claimUntil(c)[0]
		if l.FenceDue != due {
			f.Errorf("epoch %d: a fence is due: %v, want %v", l.Epoch, l.FenceDue, due)
		}
		return l
	}

	t.Run("no fence is due after the first claim and after a lease that was given back", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1") // claimed for the first time
		f.must(f.Release(f.ctx(), l))
		l = claim(f, next, false)
		f.commit(finish(l, "t1"))
		if released, err := f.ReleaseIdle(f.ctx(), l); err != nil || !released {
			t.Fatal(released, err)
		}
		f.submitTurn(l.Key, "t2")
		claim(f, next, false)
	})

	t.Run("a fence is due after a holder that fell silent, until one of the next has noted it", func(t *testing.T) {
		f := newFixture(t, open)
		f.submitTurn(f.create(key("s1")), "t1")
		claim(f, silent, false)
		f.must(f.Release(f.ctx(), claim(f, next, true))) // it releases the lease without having told them
		l := claim(f, next, true)
		f.must(f.Fenced(f.ctx(), l))
		f.must(f.Fenced(f.ctx(), l))
		f.must(f.Release(f.ctx(), l))
		claim(f, silent, false)
		claim(f, next, true)
	})

	t.Run("who has lost the session can note nothing", func(t *testing.T) {
		f := newFixture(t, open)
		f.submitTurn(f.create(key("s1")), "t1")
		f.submitTurn(f.create(key("s2")), "t1")
		lost := claim(f, store.Claim{TTL: time.Millisecond, Only: []store.Key{key("s1")}}, false)
		l := claim(f, store.Claim{TTL: time.Hour, Only: []store.Key{key("s1")}}, true)
		for name, l := range map[string]store.Lease{
			"an older epoch": lost, "one that is yet to come": {Key: l.Key, Epoch: l.Epoch + 1}, "another session": {Key: key("s2"), Epoch: l.Epoch}, "no session": {Key: key("none"), Epoch: 1},
		} {
			if err := f.Fenced(f.ctx(), l); !errors.Is(err, store.ErrStaleEpoch) {
				t.Errorf("with %s: %v", name, err)
			}
		}
		f.must(f.Release(f.ctx(), l))
		if err := f.Fenced(f.ctx(), l); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("with a lease that was given back: %v", err)
		}
		claim(f, store.Claim{TTL: time.Hour, Only: []store.Key{key("s1")}}, true)
	})
}
