package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// timeOf asks for at most ten seconds, and at least one.
func timeOf(id string, bounds ...store.Bound) *store.Reserve {
	return &store.Reserve{ID: id, Bounds: bounds, WallTime: 10 * time.Second, MinWallTime: time.Second}
}

func (f ledger) reserveTime(l store.Lease, id string, bounds ...store.Bound) store.Grant {
	f.Helper()
	r := timeOf(id, bounds...)
	f.commit(store.Write{Lease: l, Reserve: []*store.Reserve{r}})
	return r.Answer
}

func testBudgetTime(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("time is granted as far as it goes, by the budget that has least of it", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		tenant := tenantBound(store.Amount{CostNanoUSD: 1000, WallTime: time.Minute})
		session := store.Bound{Scope: store.BudgetSession, Subject: "s1", Hard: store.Amount{WallTime: 15 * time.Second}}
		for i, want := range []time.Duration{10 * time.Second, 5 * time.Second} {
			if g := f.reserveTime(l, fmt.Sprint("r", i), tenant, session); g.Denied != nil || g.Reserved != (store.Amount{WallTime: want}) {
				t.Errorf("reservation %d: %+v", i, g)
			}
		}
		d := f.reserveTime(l, "r2", tenant, session).Denied
		if d == nil || d.Scope != store.BudgetSession || d.Kind != store.LimitWallTime || d.Soft || !d.Later {
			t.Errorf("denied: %+v", d)
		}
		f.standsAt(tenant, "used 0 tokens, 0, 0s; reserved 0 tokens, 0, 15s")
	})

	t.Run("time is settled as what was used, never as more than was reserved", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{WallTime: time.Minute})
		for _, id := range []string{"r1", "r2", "r3"} {
			f.reserveTime(l, id, b)
		}
		f.settle(l, store.Settle{ID: "r1", Used: store.Amount{WallTime: 4 * time.Second}})
		f.settle(l, store.Settle{ID: "r2", Used: store.Amount{WallTime: time.Hour}})
		f.standsAt(b, "used 0 tokens, 0, 14s; reserved 0 tokens, 0, 10s")
		f.settle(l, store.Settle{ID: "r3", Unknown: true})
		f.standsAt(b, "used 0 tokens, 0, 24s; reserved 0 tokens, 0, 0s")
		f.settle(l, store.Settle{ID: "r1", Used: store.Amount{WallTime: time.Second}})
		f.standsAt(b, "used 0 tokens, 0, 24s; reserved 0 tokens, 0, 0s")
	})

	t.Run("less than the least is granted only when there is no more", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{WallTime: 10*time.Second + 500*time.Millisecond})
		f.reserveTime(l, "r1", b)
		if d := f.reserveTime(l, "r2", b).Denied; d == nil || !d.Later {
			t.Errorf("denied although there is more to come: %+v", d)
		}
		f.settle(l, store.Settle{ID: "r1", Unknown: true})
		if g := f.reserveTime(l, "r2", b); g.Reserved.WallTime != 500*time.Millisecond {
			t.Errorf("the rest: %+v", g)
		}
		f.settle(l, store.Settle{ID: "r2", Unknown: true})
		if d := f.reserveTime(l, "r3", b).Denied; d == nil || d.Later || d.Used.WallTime != b.Hard.WallTime {
			t.Errorf("after the end: %+v", d)
		}
		if d := f.reserve(l, "r4", b).Denied; d == nil || d.Kind != store.LimitWallTime {
			t.Errorf("a call after the end: %+v", d)
		}
	})

	t.Run("no time at all is never granted", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{WallTime: 10 * time.Second})
		f.reserveTime(l, "r1", b)
		none := timeOf("r2", b)
		none.MinWallTime = 0
		f.commit(store.Write{Lease: l, Reserve: []*store.Reserve{none}})
		if d := none.Answer.Denied; d == nil || !d.Later {
			t.Errorf("answer %+v", none.Answer)
		}
	})

	t.Run("what is settled and reserved again in one write is never lost to others", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{WallTime: 10 * time.Second})
		f.reserveTime(l, "time", b)
		again := timeOf("time", b)
		again.MinWallTime = 0
		f.commit(store.Write{
			Lease:  l,
			Settle: []store.Settle{{ID: "time", Used: store.Amount{WallTime: 4 * time.Second}}}, Reserve: []*store.Reserve{again},
		})
		if again.Answer.Denied != nil || again.Answer.Reserved.WallTime != 6*time.Second {
			t.Errorf("answer %+v", again.Answer)
		}
		f.standsAt(b, "used 0 tokens, 0, 4s; reserved 0 tokens, 0, 6s")
	})

	t.Run("time that a deleted session had reserved counts as used", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{WallTime: time.Minute})
		f.commit(finish(l, "t1"))
		f.reserveTime(l, "time", b)
		_, err := f.DeleteSession(f.ctx(), l.Key, request("delete"))
		f.must(err)
		f.standsAt(b, "used 0 tokens, 0, 10s; reserved 0 tokens, 0, 0s")
	})

	testBudgetTimeConcurrency(t, open)
}

// testBudgetTimeConcurrency lets many holders use up the time of one budget in
// slices, all at the same time.
func testBudgetTimeConcurrency(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("many at the same time never exceed a budget's time", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		const holders, limit = 8, 200 * time.Second
		b := tenantBound(store.Amount{WallTime: limit})
		var all sync.WaitGroup
		for i := range holders {
			l := f.active(fmt.Sprint("s", i))
			all.Go(func() {
				for {
					r := timeOf("time", b)
					for _, w := range []store.Write{
						{Lease: l, Reserve: []*store.Reserve{r}},
						{Lease: l, Settle: []store.Settle{{ID: "time", Used: store.Amount{WallTime: time.Duration(i+1) * time.Second}}}},
					} {
						errs, err := f.Commit(f.ctx(), []store.Write{w})
						if err := errors.Join(append(errs, err)...); err != nil {
							t.Error(err)
							return
						}
					}
					if r.Answer.Denied != nil && !r.Answer.Denied.Later {
						return
					}
				}
			})
		}
		all.Wait()
		f.standsAt(b, fmt.Sprintf("used 0 tokens, 0, %v; reserved 0 tokens, 0, 0s", limit))
	})
}
