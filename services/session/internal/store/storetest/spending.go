package storetest

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testSpending(t *testing.T, open func(t *testing.T) store.Store) {
	bound := tenantBound(store.Amount{Tokens: 150})
	spend := func(f ledger, k store.Key, settle []store.Settle, reserve ...*store.Reserve) {
		f.Helper()
		f.must(f.Spend(f.ctx(), store.Spending{Key: k, Settle: settle, Reserve: reserve, Keep: time.Hour}))
	}
	jobs := func(f ledger, id string) int {
		f.Helper()
		claimed, err := f.ClaimJobs(f.ctx(), store.JobClaim{Tenant: "acme", ID: id, Limit: 5, TTL: time.Minute})
		f.must(err)
		for _, j := range claimed {
			f.must(f.EndJob(f.ctx(), j, &j))
		}
		return len(claimed)
	}

	t.Run("a call without a session reserves and settles", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		first, second := call("a", bound), call("b", bound)
		spend(f, key(""), nil, first)
		spend(f, key(""), nil, second)
		if first.Answer.Output != 90 || second.Answer.Output != 40 {
			t.Errorf("granted %d and %d tokens of output, want 90 and 40", first.Answer.Output, second.Answer.Output)
		}
		f.standsAt(bound, "used 0 tokens, 0, 0s; reserved 150 tokens, 150, 0s")
		if n := jobs(f, store.SettleID("", "a")); n != 1 {
			t.Errorf("%d jobs settle an open reservation, want 1", n)
		}
		spend(f, key(""), []store.Settle{{ID: "a", Used: store.Amount{Tokens: 12, CostNanoUSD: 3}}, {ID: "b", Unknown: true}})
		f.standsAt(bound, "used 62 tokens, 53, 0s; reserved 0 tokens, 0, 0s")
		if n := jobs(f, store.SettleID("", "a")); n != 0 {
			t.Errorf("%d jobs settle a settled reservation", n)
		}
		spend(f, key(""), []store.Settle{{ID: "a", Used: store.Amount{Tokens: 1}}})
		f.standsAt(bound, "used 62 tokens, 53, 0s; reserved 0 tokens, 0, 0s")
	})

	t.Run("a denial reserves nothing and leaves no job", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		r := call("a", tenantBound(store.Amount{Tokens: 20}))
		spend(f, key(""), nil, r)
		if d := r.Answer.Denied; d == nil || d.Kind != store.LimitTokens {
			t.Errorf("got %+v", r.Answer)
		}
		f.standsAt(bound, "used 0 tokens, 0, 0s; reserved 0 tokens, 0, 0s")
		if n := jobs(f, store.SettleID("", "a")); n != 0 {
			t.Errorf("%d jobs", n)
		}
	})

	t.Run("a session's use goes with the session, and the tenant's stays", func(t *testing.T) {
		f := ledger{newFixture(t, open)}
		f.create(key("s1"))
		session := store.Bound{Scope: store.BudgetSession, Subject: "s1", Hard: store.Amount{Tokens: 1000}}
		spend(f, key("s1"), nil, call("a", bound, session))
		f.standsAt(session, "used 0 tokens, 0, 0s; reserved 100 tokens, 100, 0s")
		_, err := f.DeleteSession(f.ctx(), key("s1"), request("delete"))
		f.must(err)
		f.standsAt(session, "used 0 tokens, 0, 0s; reserved 0 tokens, 0, 0s")
		f.standsAt(bound, "used 100 tokens, 100, 0s; reserved 0 tokens, 0, 0s")
		spend(f, key("s1"), []store.Settle{{ID: "a", Used: store.Amount{Tokens: 7}}})
		f.standsAt(bound, "used 100 tokens, 100, 0s; reserved 0 tokens, 0, 0s")
	})
}
