package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// tenantBound returns a budget of the tenant, as large as hard.
func tenantBound(hard store.Amount) store.Bound {
	return store.Bound{Scope: store.BudgetTenant, Subject: "acme", Hard: hard}
}

// ledger is a fixture for budgets.
type ledger struct{ *fixture }

// reserve asks for a model call that costs 10 for its input and 1 for each of up
// to 90 tokens of output.
func (f ledger) reserve(l store.Lease, id string, bounds ...store.Bound) store.Grant {
	f.Helper()
	r := call(id, bounds...)
	f.commit(store.Write{Lease: l, Reserve: []*store.Reserve{r}})
	return r.Answer
}

func call(id string, bounds ...store.Bound) *store.Reserve {
	return &store.Reserve{
		ID: id, Bounds: bounds, Input: store.Amount{Tokens: 10, CostNanoUSD: 10},
		MinOutput: 20, MaxOutput: 90, OutputPrice: 1,
	}
}

func (f ledger) settle(l store.Lease, s ...store.Settle) {
	f.Helper()
	f.commit(store.Write{Lease: l, Settle: s})
}

// stands returns the used and the reserved part of a budget.
func (f ledger) stands(b store.Bound) string {
	f.Helper()
	all, err := f.Balances(f.ctx(), "acme", []store.Bound{b})
	f.must(err)
	if len(all) != 1 {
		f.Fatalf("%d balances", len(all))
	}
	u, r := all[0].Used, all[0].Reserved
	return fmt.Sprintf("used %d tokens, %d, %v; reserved %d tokens, %d, %v", u.Tokens, u.CostNanoUSD, u.WallTime, r.Tokens, r.CostNanoUSD, r.WallTime)
}

func (f ledger) standsAt(b store.Bound, want string) {
	f.Helper()
	if got := f.stands(b); got != want {
		f.Errorf("the %s's budget: %s; want %s", b.Scope, got, want)
	}
}

func testBudgets(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a reservation is granted, and settled as what was used", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{Tokens: 1000, CostNanoUSD: 1000})
		f.standsAt(b, "used 0 tokens, 0, 0s; reserved 0 tokens, 0, 0s")
		g := f.reserve(l, "r1", b)
		want := store.Grant{Output: 90, Reserved: store.Amount{Tokens: 100, CostNanoUSD: 100}}
		if d := cmp.Diff(want, g); d != "" {
			t.Error(d)
		}
		f.standsAt(b, "used 0 tokens, 0, 0s; reserved 100 tokens, 100, 0s")
		f.settle(l, store.Settle{ID: "r1", Used: store.Amount{Tokens: 7, CostNanoUSD: 8}})
		f.standsAt(b, "used 7 tokens, 8, 0s; reserved 0 tokens, 0, 0s")
		f.settle(l, store.Settle{ID: "r1", Used: store.Amount{Tokens: 7, CostNanoUSD: 8}})
		f.standsAt(b, "used 7 tokens, 8, 0s; reserved 0 tokens, 0, 0s")
	})

	t.Run("one whose use is not known is settled as it was reserved", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{CostNanoUSD: 1000})
		f.reserve(l, "r1", b)
		f.settle(l, store.Settle{ID: "r1", Unknown: true})
		f.standsAt(b, "used 100 tokens, 100, 0s; reserved 0 tokens, 0, 0s")
	})

	t.Run("the last part of a budget is granted as far as it goes, and then denied", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{CostNanoUSD: 160})
		for i, want := range []int64{90, 50} {
			if g := f.reserve(l, fmt.Sprint("r", i), b); g.Output != want || g.Denied != nil {
				t.Errorf("reservation %d: %+v", i, g)
			}
		}
		d := f.reserve(l, "r3", b).Denied
		if d == nil || d.Kind != store.LimitCost || d.Soft || !d.Later || d.Least.CostNanoUSD != 30 || d.Reserved.CostNanoUSD != 160 {
			t.Errorf("denied: %+v", d)
		}
		f.standsAt(b, "used 0 tokens, 0, 0s; reserved 160 tokens, 160, 0s")
	})

	testBudgetKinds(t, open)
	testBudgetTime(t, open)
	testBudgetWindows(t, open)
	testBudgetFencing(t, open)
	testBudgetConcurrency(t, open)
}

func testBudgetKinds(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("every budget counts, and the tightest decides", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		tenant := tenantBound(store.Amount{CostNanoUSD: 1000})
		session := store.Bound{Scope: store.BudgetSession, Subject: "s1", Hard: store.Amount{Tokens: 120}}
		user := store.Bound{Scope: store.BudgetUser, Subject: "ada", Hard: store.Amount{CostNanoUSD: 120}}
		if g := f.reserve(l, "r1", tenant, session, user); g.Output != 90 {
			t.Errorf("grant %+v", g)
		}
		d := f.reserve(l, "r2", tenant, session, user).Denied
		if d == nil || d.Scope != store.BudgetSession || d.Kind != store.LimitTokens || !d.Later {
			t.Errorf("denied: %+v", d)
		}
		f.settle(l, store.Settle{ID: "r1", Used: store.Amount{CostNanoUSD: 100}})
		d = f.reserve(l, "r3", tenant, session, user).Denied
		if d == nil || d.Scope != store.BudgetUser || d.Kind != store.LimitCost || d.Later {
			t.Errorf("denied: %+v", d)
		}
		f.standsAt(tenant, "used 0 tokens, 100, 0s; reserved 0 tokens, 0, 0s")
		f.standsAt(session, "used 0 tokens, 100, 0s; reserved 0 tokens, 0, 0s")
	})

	t.Run("a soft limit asks once it is reached", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{CostNanoUSD: 1000})
		b.Soft.CostNanoUSD = 100
		f.reserve(l, "r1", b)
		if g := f.reserve(l, "r2", b); g.Denied != nil {
			t.Errorf("what is only reserved asks nobody: %+v", g.Denied)
		}
		f.settle(l, store.Settle{ID: "r1", Unknown: true})
		if d := f.reserve(l, "r3", b).Denied; d == nil || !d.Soft || d.Kind != store.LimitCost {
			t.Errorf("denied: %+v", d)
		}
		b.Soft = store.Amount{}
		if g := f.reserve(l, "r4", b); g.Denied != nil {
			t.Errorf("denied although a person allowed it: %+v", g.Denied)
		}
	})

	t.Run("a budget goes with its session, and a tenant's stays", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		tenant := tenantBound(store.Amount{CostNanoUSD: 1000})
		session := store.Bound{Scope: store.BudgetSession, Subject: "s1", Hard: store.Amount{Tokens: 1000}}
		f.reserve(l, "r1", tenant, session)
		w := finish(l, "t1")
		w.Settle = []store.Settle{{ID: "r1", Unknown: true}}
		f.commit(w)
		_, err := f.DeleteSession(f.ctx(), l.Key, request("delete"))
		f.must(err)
		f.standsAt(tenant, "used 100 tokens, 100, 0s; reserved 0 tokens, 0, 0s")
		f.standsAt(session, "used 0 tokens, 0, 0s; reserved 0 tokens, 0, 0s")
	})
}

func testBudgetWindows(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a window that is over does not count", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		b := tenantBound(store.Amount{CostNanoUSD: 100})
		b.Window = 2 * time.Second
		f.reserve(l, "r1", b)
		all, err := f.Balances(f.ctx(), "acme", []store.Bound{b})
		f.must(err)
		if end := all[0].WindowEnd; end.Nanosecond() != 0 || time.Until(end) > 2*time.Second {
			t.Errorf("the window ends at %v", end)
		}
		deadline := time.Now().Add(10 * time.Second)
		for f.reserve(l, f.nextID("again"), b).Denied != nil {
			if time.Now().After(deadline) {
				t.Fatal("the window does not end")
			}
		}
		f.settle(l, store.Settle{ID: "r1", Unknown: true})
		if d := f.stands(b); d != "used 0 tokens, 0, 0s; reserved 100 tokens, 100, 0s" {
			t.Errorf("the reservation of the window before was counted in this one: %s", d)
		}
	})

	t.Run("budgets of other tenants are others", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		l := f.active("s1")
		k := f.create(store.Key{Tenant: "globex", Session: "s1"})
		f.submitTurn(k, "t1")
		other := f.claim(k)
		b := tenantBound(store.Amount{CostNanoUSD: 100})
		errs, err := f.Commit(f.ctx(), []store.Write{
			{Lease: l, Reserve: []*store.Reserve{call("r", b)}}, {Lease: other, Reserve: []*store.Reserve{call("r", b)}},
		})
		f.must(errors.Join(append(errs, err)...))
		f.standsAt(b, "used 0 tokens, 0, 0s; reserved 100 tokens, 100, 0s")
		f.settle(other, store.Settle{ID: "r"})
		f.standsAt(b, "used 0 tokens, 0, 0s; reserved 100 tokens, 100, 0s")
	})
}
