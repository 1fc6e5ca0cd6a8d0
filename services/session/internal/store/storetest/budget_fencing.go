package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testBudgetFencing(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("what a session that is deleted had reserved counts as used, and no other's", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l, other := f.active("s1"), f.active("s2")
		b := tenantBound(store.Amount{CostNanoUSD: 1000})
		f.commit(finish(l, "t1"))
		f.reserve(l, "r1", b)
		f.reserve(l, "r2", b)
		f.reserve(other, "r1", b)
		_, err := f.DeleteSession(f.ctx(), l.Key, request("delete"))
		f.must(err)
		f.standsAt(b, "used 200 tokens, 200, 0s; reserved 100 tokens, 100, 0s")
	})

	t.Run("a reservation that is settled and made again in one write is open", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{CostNanoUSD: 1000})
		f.reserve(l, "r1", b)
		f.commit(store.Write{Lease: l, Settle: []store.Settle{{ID: "r1", Unknown: true}}, Reserve: []*store.Reserve{call("r1", b)}})
		f.standsAt(b, "used 100 tokens, 100, 0s; reserved 100 tokens, 100, 0s")
		f.settle(l, store.Settle{ID: "r1"})
		f.standsAt(b, "used 100 tokens, 100, 0s; reserved 0 tokens, 0, 0s")
	})

	t.Run("a reservation that is made again while it is open counts as used", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l, other := f.active("s1"), f.active("s2")
		b := tenantBound(store.Amount{CostNanoUSD: 1000})
		f.reserve(l, "r1", b)
		errs, err := f.Commit(f.ctx(), []store.Write{
			{Lease: l, Reserve: []*store.Reserve{call("r1", b)}}, {Lease: other, Reserve: []*store.Reserve{call("r1", b)}},
		})
		f.must(errors.Join(append(errs, err)...))
		f.standsAt(b, "used 100 tokens, 100, 0s; reserved 200 tokens, 200, 0s")
	})

	t.Run("what is left of a session names what it has reserved", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l, other := f.active("s1"), f.active("s2")
		f.reserve(l, "r2", tenantBound(store.Amount{CostNanoUSD: 1000}), store.Bound{Scope: store.BudgetUser, Subject: "u", Hard: store.Amount{CostNanoUSD: 1000}})
		f.reserve(l, "r1", tenantBound(store.Amount{CostNanoUSD: 1000}))
		f.reserve(other, "r3", tenantBound(store.Amount{CostNanoUSD: 1000}))
		left, err := f.Salvage(f.ctx(), l)
		f.must(err)
		if d := cmp.Diff([]string{"r1", "r2"}, left.Reservations); d != "" {
			t.Error(d)
		}
	})

	t.Run("a holder that lost its lease neither reserves nor settles", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		good, stale := f.active("good"), f.active("stale")
		b := tenantBound(store.Amount{CostNanoUSD: 1000})
		f.reserve(stale, "r1", b)
		stale.Epoch--
		r := call("r1", b)
		errs, err := f.Commit(f.ctx(), []store.Write{
			{Lease: stale, Reserve: []*store.Reserve{call("r2", b)}, Settle: []store.Settle{{ID: "r1", Unknown: true}}},
			{Lease: good, Reserve: []*store.Reserve{r}},
		})
		f.must(err)
		if !errors.Is(errs[0], store.ErrStaleEpoch) || errs[1] != nil || r.Answer.Output != 90 {
			t.Errorf("errors %v, answer %+v", errs, r.Answer)
		}
		f.standsAt(b, "used 0 tokens, 0, 0s; reserved 200 tokens, 200, 0s")
	})

	t.Run("a reservation that one commit settles more than once counts once", func(t *testing.T) {
		for name, writes := range map[string]func(l, stale store.Lease) []store.Write{
			"in one write":  func(l, _ store.Lease) []store.Write { return []store.Write{settling(l, "r1", "r1")} },
			"in two writes": func(l, _ store.Lease) []store.Write { return []store.Write{settling(l, "r1"), settling(l, "r1")} },
			"beside one who lost it": func(l, stale store.Lease) []store.Write {
				return []store.Write{settling(stale, "r1"), settling(l, "r1")}
			},
			"before one who lost it": func(l, stale store.Lease) []store.Write {
				return []store.Write{settling(l, "r1"), settling(stale, "r1")}
			},
			"beside another's of it": func(l, _ store.Lease) []store.Write { return []store.Write{settling(l, "r1"), settling(l, "r2", "r1")} },
		} {
			t.Run(name, func(t *testing.T) {
				f := ledger{newFixture(t, open)}
				l := f.active("s1")
				b := tenantBound(store.Amount{CostNanoUSD: 1000})
				f.reserve(l, "r1", b)
				f.reserve(l, "r3", b)
				stale := l
				stale.Epoch--
				_, err := f.Commit(f.ctx(), writes(l, stale))
				f.must(err)
				f.standsAt(b, "used 100 tokens, 100, 0s; reserved 100 tokens, 100, 0s")
			})
		}
	})

	t.Run("the reservations of one commit are decided in their order", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		b := tenantBound(store.Amount{CostNanoUSD: 130})
		var writes []store.Write
		var asked []*store.Reserve
		for i := range 3 {
			r := call("r", b)
			asked = append(asked, r)
			writes = append(writes, store.Write{Lease: f.active(fmt.Sprint("s", i)), Reserve: []*store.Reserve{r}})
		}
		errs, err := f.Commit(f.ctx(), writes)
		f.must(errors.Join(append(errs, err)...))
		for i, want := range []int64{90, 20, 0} {
			if g := asked[i].Answer; g.Output != want || (g.Denied != nil) != (want == 0) {
				t.Errorf("answer %d: %+v", i, g)
			}
		}
	})
}

// settling returns a write that settles reservations whose use is not known.
func settling(l store.Lease, ids ...string) store.Write {
	w := store.Write{Lease: l}
	for _, id := range ids {
		w.Settle = append(w.Settle, store.Settle{ID: id, Unknown: true})
	}
	return w
}

// testBudgetConcurrency lets many holders use up one budget, all at the same
// time, some of them giving back what they do not use.
func testBudgetConcurrency(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("many at the same time never exceed a budget", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		const holders, limit = 8, 2000
		b := tenantBound(store.Amount{CostNanoUSD: limit})
		user := store.Bound{Scope: store.BudgetUser, Subject: "ada", Hard: store.Amount{Tokens: 10 * limit}}
		leases := make([]store.Lease, holders)
		for i := range leases {
			leases[i] = f.active(fmt.Sprint("s", i))
		}
		var all sync.WaitGroup
		for i, l := range leases {
			all.Go(func() {
				for n := 0; ; n++ {
					r := call(fmt.Sprint("r", n), b, user)
					errs, err := f.Commit(f.ctx(), []store.Write{{Lease: l, Reserve: []*store.Reserve{r}}})
					if err := errors.Join(append(errs, err)...); err != nil {
						t.Error(err)
						return
					}
					if r.Answer.Denied != nil {
						return
					}
					s := store.Settle{ID: r.ID, Unknown: i%2 == 0, Used: store.Amount{Tokens: 10, CostNanoUSD: 30}}
					errs, err = f.Commit(f.ctx(), []store.Write{{Lease: l, Settle: []store.Settle{s}}})
					if err := errors.Join(append(errs, err)...); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		balances, err := f.Balances(f.ctx(), "acme", []store.Bound{b, user})
		f.must(err)
		used := balances[0].Used.CostNanoUSD
		if r := balances[0].Reserved; r != (store.Amount{}) || used > limit || used <= limit-30 {
			t.Errorf("used %d of %d, reserved %+v", used, limit, r)
		}
		if balances[1].Used.CostNanoUSD != used {
			t.Errorf("the user used %d, the tenant %d", balances[1].Used.CostNanoUSD, used)
		}
	})
	t.Run("commits whose time runs out leave the ledger whole", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		const holders, limit = 4, 10_000
		b := tenantBound(store.Amount{CostNanoUSD: limit})
		leases := make([]store.Lease, holders)
		for i := range leases {
			leases[i] = f.active(fmt.Sprint("s", i))
		}
		var all sync.WaitGroup
		for i, l := range leases {
			try := func(within time.Duration, w store.Write) error {
				ctx, cancel := context.WithTimeout(f.ctx(), within)
				defer cancel()
				w.Lease = l
				_, err := f.Commit(ctx, []store.Write{w})
				return err
			}
			all.Go(func() {
				for n := range 50 { // the times end anywhere in a commit's work, but a few are long enough
					within := time.Duration((n*370+i*90)%5000) * time.Microsecond
					if n%10 == 0 {
						within = time.Minute
					}
					r := call(fmt.Sprint("r", n), b)
					_ = try(within, store.Write{Reserve: []*store.Reserve{r}})
					settled := store.Write{Settle: []store.Settle{{ID: r.ID, Unknown: true}}}
					for try(within, settled) != nil {
						within += 2*within + time.Millisecond
					}
				}
			})
		}
		all.Wait()
		balances, err := f.Balances(f.ctx(), "acme", []store.Bound{b})
		f.must(err)
		if used := balances[0].Used.CostNanoUSD; balances[0].Reserved != (store.Amount{}) || used > limit || used%100 != 0 || used == 0 {
			t.Errorf("used %d of %d, reserved %+v", used, limit, balances[0].Reserved)
		}
	})
}
