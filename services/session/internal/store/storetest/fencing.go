package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testFencing(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name string
		lose func(f *fixture, l store.Lease)
	}{
		{"was released", func(f *fixture, l store.Lease) { f.must(f.Release(f.ctx(), l)) }},
		{"was released and claimed by another", func(f *fixture, l store.Lease) {
			f.must(f.Release(f.ctx(), l))
			f.claim(l.Key)
		}},
		{"was deleted", func(f *fixture, l store.Lease) {
			f.commit(finish(l, "t1"))
			_, err := f.DeleteSession(f.ctx(), l.Key, store.Request{})
			f.must(err)
		}},
	} {
		t.Run("a holder whose session "+c.name+" can do nothing", func(t *testing.T) {
			f := newFixture(t, open)
			l := f.active("s1")
			c.lose(f, l)
			_, load := f.Load(f.ctx(), l)
			_, inbox := f.Inbox(f.ctx(), l)
			_, idle := f.ReleaseIdle(f.ctx(), l)
			errs, err := f.Commit(f.ctx(), []store.Write{{Lease: l, LastSeq: 1, Events: []*sessionv1.Event{delta(2, 2, "late")}}})
			f.must(err)
			for name, err := range map[string]error{"load": load, "inbox": inbox, "release idle": idle, "commit": errs[0]} {
				if !errors.Is(err, store.ErrStaleEpoch) {
					t.Errorf("%s: %v", name, err)
				}
			}
			f.must(f.Release(f.ctx(), l))
			lost, err := f.Renew(f.ctx(), []store.Lease{l}, time.Hour)
			f.must(err)
			if d := cmp.Diff([]store.Key{l.Key}, lost); d != "" {
				t.Errorf("renew: %s", d)
			}
			if s, err := f.GetSession(f.ctx(), l.Key); err == nil && s.LastSeq != 1 {
				t.Errorf("the late event was written: %v", s)
			}
		})
	}

	t.Run("a late release takes nothing from the next holder", func(t *testing.T) {
		f := newFixture(t, open)
		old := f.active("s1")
		f.must(f.Release(f.ctx(), old))
		l := f.claim(old.Key)
		f.must(f.Release(f.ctx(), old))
		f.claimsNothing(l.Key)
		f.commit(store.Write{Lease: l, StepCommitted: true})
	})

	t.Run("a lease of an epoch that is yet to come is worth nothing", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		l.Epoch++
		if _, err := f.Load(f.ctx(), l); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("load: %v", err)
		}
	})

	t.Run("renewal keeps what is held and tells what is lost", func(t *testing.T) {
		f := newFixture(t, open)
		for _, id := range []string{"kept", "lost", "released", "other"} {
			f.submitTurn(f.create(key(id)), "t")
		}
		kept, err := f.Claim(f.ctx(), store.Claim{TTL: time.Millisecond, Only: []store.Key{key("kept")}})
		f.must(err)
		lost, err := f.Claim(f.ctx(), store.Claim{TTL: time.Millisecond, Only: []store.Key{key("lost")}})
		f.must(err)
		released := f.claim(key("released"))
		f.must(f.Release(f.ctx(), released))
		next := f.claimUntil(store.Claim{TTL: time.Hour, Only: []store.Key{key("lost")}})

		got, err := f.Renew(f.ctx(), []store.Lease{lost[0], kept[0], released, {Key: key("none"), Epoch: 1}}, time.Hour)
		f.must(err)
		slices.SortFunc(got, func(a, b store.Key) int { return cmpKeys(a, b) })
		if d := cmp.Diff([]store.Key{key("lost"), key("none"), key("released")}, got); d != "" {
			t.Error(d)
		}
		f.claimsNothing(key("kept"), key("lost"))
		got, err = f.Renew(f.ctx(), next, time.Hour)
		f.must(err)
		if len(got) != 0 {
			t.Errorf("lost %v", got)
		}
		got, err = f.Renew(f.ctx(), nil, time.Hour)
		f.must(err)
		if len(got) != 0 {
			t.Errorf("of none: %v", got)
		}
	})

	t.Run("many leases of several tenants are renewed together, beside commits", func(t *testing.T) {
		f := newFixture(t, open)
		var all []store.Lease
		want := map[store.Key]bool{}
		for i := range 150 {
			k := key(fmt.Sprintf(`s%d`, i))
			if i%3 == 0 {
				k.Tenant = `ten"ant,`
			}
			f.submitTurn(f.create(k), "t1")
			l := f.claim(k)
			if i%10 == 0 {
				l.Epoch++
				want[k] = true
			}
			all = append(all, l)
		}
		var commits sync.WaitGroup
		defer commits.Wait()
		committing := slices.Clone(all)
		for worker := range 3 {
			commits.Go(func() {
				for i := worker; i < len(committing); i += 3 {
					l := committing[i]
					if errs, err := f.Commit(f.ctx(), []store.Write{{Lease: l, AddUsage: &sessionv1.Usage{InputTokens: 1}}}); err != nil || (errs[0] == nil) == want[l.Key] {
						t.Errorf("a commit beside the renewal: %v, %v", errs, err)
					}
				}
			})
		}
		for range 5 {
			lost, err := f.Renew(f.ctx(), all, time.Hour)
			f.must(err)
			got := map[store.Key]bool{}
			for _, k := range lost {
				got[k] = true
			}
			if d := cmp.Diff(want, got); d != "" || len(lost) != len(got) {
				t.Errorf("lost, without (-) and with (+) renewal: %s", d)
			}
			slices.Reverse(all) // the order must not matter
		}
		if got, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour}); err != nil || len(got) > 0 {
			t.Errorf("claimed %v, %v", got, err)
		}
	})

	t.Run("a renewed lease ends at its new time", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		lost, err := f.Renew(f.ctx(), []store.Lease{l}, time.Millisecond)
		f.must(err)
		if len(lost) > 0 {
			t.Fatal(lost)
		}
		f.claimUntil(store.Claim{TTL: time.Hour, Only: []store.Key{l.Key}})
	})
}

func cmpKeys(a, b store.Key) int {
	switch {
	case a.Tenant+"/"+a.Session < b.Tenant+"/"+b.Session:
		return -1
	case a == b:
		return 0
	}
	return 1
}
