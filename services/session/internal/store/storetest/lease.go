package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// claimUntil claims again and again until it gets something: leases end by the
// database's clock, which sends no signal.
func (f *fixture) claimUntil(c store.Claim) []store.Lease {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), 20*time.Second)
	defer cancel()
	for {
		leases, err := f.Claim(ctx, c)
		f.must(err)
		if len(leases) > 0 {
			return leases
		}
	}
}

func testClaim(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a session without work is not claimed", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		f.claimsNothing()
		f.claimsNothing(k)
	})

	t.Run("only a holder reads queued turns with their state", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		n := newTurn(k, "t1")
		n.Turn.Run = []byte("its state")
		_, err := f.Submit(f.ctx(), n)
		f.must(err)
		l := f.claim(k)
		row, err := f.LoadTurn(f.ctx(), l, "t1")
		f.must(err)
		if row.ID != "t1" || row.Turn.GetName() != turnName(k, "t1") || row.Turn.GetState() != sessionv1.TurnState_TURN_STATE_QUEUED || string(row.Run) != "its state" {
			t.Errorf("the turn is %v with %q", row.Turn, row.Run)
		}
		if _, err := f.LoadTurn(f.ctx(), l, "none"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a turn that is not there: %v", err)
		}
		l.Epoch--
		if _, err := f.LoadTurn(f.ctx(), l, "t1"); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("with an older epoch: %v", err)
		}
	})

	t.Run("a claimed session is not claimed again before its lease ends", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		f.submitTurn(k, "t1")
		first := f.claim(k)
		if first.Epoch != 1 {
			t.Errorf("epoch %d", first.Epoch)
		}
		f.submitTurn(k, "t2")
		f.claimsNothing()
		f.claimsNothing(k)
	})

	t.Run("a lease that has ended is claimed by the next", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		f.submitTurn(k, "t1")
		first := f.claimUntil(store.Claim{Replica: "one", TTL: time.Millisecond, Limit: 1})
		second := f.claimUntil(store.Claim{Replica: "two", TTL: time.Hour, Limit: 1})
		if second[0].Key != k || second[0].Epoch != first[0].Epoch+1 {
			t.Errorf("leases %v and then %v", first, second)
		}
		if _, err := f.Load(f.ctx(), first[0]); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("load by the first: %v", err)
		}
	})

	t.Run("a claim keeps to its limit and to the sessions it names", func(t *testing.T) {
		f := newFixture(t, open)
		var keys []store.Key
		for range 5 {
			k := f.create(key(f.nextID("s")))
			f.submitTurn(k, "t1")
			keys = append(keys, k)
		}
		leases, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour, Limit: 5, Only: []store.Key{keys[3], keys[3], key("none"), {Tenant: "other", Session: "s1"}}})
		f.must(err)
		if len(leases) != 1 || leases[0].Key != keys[3] {
			t.Errorf("of named ones: %v", leases)
		}
		for _, want := range []int{3, 1, 0} {
			leases, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour, Limit: 3})
			f.must(err)
			if len(leases) != want {
				t.Errorf("got %v, want %d", leases, want)
			}
		}
	})

	t.Run("no tenant gets more than its share of a claimer", func(t *testing.T) {
		f := newFixture(t, open)
		for _, tenant := range []string{"big", "small"} {
			for range map[string]int{"big": 10, "small": 2}[tenant] {
				k := f.create(store.Key{Tenant: tenant, Session: f.nextID("s")})
				f.submitTurn(k, "t1")
			}
		}
		held := map[string]int{"small": 1}
		for _, want := range []map[string]int{{"big": 2, "small": 3}, {"big": 4, "small": 3}, {"big": 4, "small": 3}} {
			leases, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour, Limit: 4, TenantLimit: 4, Held: held})
			f.must(err)
			for _, l := range leases {
				held[l.Tenant]++
			}
			if d := cmp.Diff(want, held); d != "" {
				t.Error(d)
			}
		}
	})

	t.Run("no tenant waits behind all sessions of another", func(t *testing.T) {
		f := newFixture(t, open)
		for _, tenant := range []string{"big", "small", "tiny"} {
			for range map[string]int{"big": 10, "small": 2, "tiny": 1}[tenant] {
				k := f.create(store.Key{Tenant: tenant, Session: f.nextID("s")})
				f.submitTurn(k, "t1")
			}
		}
		for _, want := range []map[string]int{
			{"big": 1, "small": 1, "tiny": 1},
			{"big": 2, "small": 1},
			{"big": 3},
		} {
			leases, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour, Limit: 3})
			f.must(err)
			got := map[string]int{}
			for _, l := range leases {
				got[l.Tenant]++
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		}
	})

	t.Run("two claimers never get the same session", func(t *testing.T) {
		f := newFixture(t, open)
		const sessions = 40
		for range sessions {
			f.submitTurn(f.create(key(f.nextID("s"))), "t1")
		}
		var mu sync.Mutex
		seen := map[store.Key]int{}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for empty := 0; empty < 3; { // claims skip rows that others lock: an empty claim is not the end
					leases, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour, Limit: 3})
					if err != nil {
						t.Error(err)
						return
					}
					if len(leases) == 0 {
						empty++
					}
					mu.Lock()
					for _, l := range leases {
						seen[l.Key]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for _, l := range f.claimRemaining() {
			seen[l.Key]++
		}
		if len(seen) != sessions {
			t.Errorf("%d sessions were claimed", len(seen))
		}
		for k, n := range seen {
			if n != 1 {
				t.Errorf("%v was claimed %d times", k, n)
			}
		}
	})
	testWork(t, open)
	testClaimCount(t, open)
}

// claimRemaining claims the remaining sessions.
func (f *fixture) claimRemaining() []store.Lease {
	f.Helper()
	leases, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour})
	f.must(err)
	return leases
}

// testWork checks which sessions have work, by whether they can be released
// idle and whether a released one is claimed.
func testWork(t *testing.T, open func(t *testing.T) store.Store) {
	call := store.PendingCall{CallID: "c", TurnID: "t1", Answer: store.CommandToolResult}
	for _, c := range []struct {
		name string
		work bool
		make func(f *fixture) store.Lease
	}{
		{"a command", true, func(f *fixture) store.Lease { return f.held("s1", "t1") }},
		{"an active turn", true, func(f *fixture) store.Lease { return f.active("s1") }},
		{"a consumed command", false, func(f *fixture) store.Lease {
			l := f.held("s1", "t1")
			f.commit(store.Write{Lease: l, Consume: []int64{1}})
			return l
		}},
		{"a finished turn", false, func(f *fixture) store.Lease {
			l := f.active("s1")
			f.commit(finish(l, "t1"))
			return l
		}},
		{"a turn that waits", false, func(f *fixture) store.Lease {
			l := f.active("s1")
			f.commit(wait(l, "t1", call))
			return l
		}},
		{"an answer for a turn that waits", true, func(f *fixture) store.Lease {
			l := f.active("s1")
			f.commit(wait(l, "t1", call))
			_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandToolResult, "c", ""))
			f.must(err)
			return l
		}},
		{"a turn that waited and runs again", true, func(f *fixture) store.Lease {
			l := f.active("s1")
			f.commit(wait(l, "t1", call))
			f.commit(start(l, "t1"))
			return l
		}},
	} {
		t.Run(c.name+" is work or not", func(t *testing.T) {
			f := newFixture(t, open)
			l := c.make(f)
			released, err := f.ReleaseIdle(f.ctx(), l)
			f.must(err)
			if released == c.work {
				t.Errorf("released as idle: %t", released)
			}
			if released {
				f.claimsNothing(l.Key)
				return
			}
			f.claimsNothing(l.Key)
			f.must(f.Release(f.ctx(), l))
			if next := f.claim(l.Key); next.Epoch != l.Epoch+1 {
				t.Errorf("epoch %d after %d", next.Epoch, l.Epoch)
			}
		})
	}
}

func testClaimCount(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a lease that is given back was no claim", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		for range 5 {
			f.must(f.Release(f.ctx(), l))
			l = f.claim(l.Key)
		}
		snap, err := f.Load(f.ctx(), l)
		f.must(err)
		if snap.Claims != 1 {
			t.Errorf("%d claims, want the one that holds", snap.Claims)
		}
	})
	t.Run("claims are counted until the turn gets further", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		claims := func() int {
			t.Helper()
			snap, err := f.Load(f.ctx(), l)
			f.must(err)
			return snap.Claims
		}
		again := func() { // the holder dies
			_, err := f.Renew(f.ctx(), []store.Lease{l}, time.Microsecond)
			f.must(err)
			l = f.claimUntil(store.Claim{TTL: time.Hour, Only: []store.Key{l.Key}})[0]
		}
		for want := range 4 {
			if got := claims(); got != want {
				t.Errorf("%d claims since the turn began, want %d", got, want)
			}
			again()
		}
		f.commit(store.Write{Lease: l, StepCommitted: true})
		again()
		if got := claims(); got != 1 {
			t.Errorf("%d claims since the step", got)
		}
		f.commit(wait(l, "t1", store.PendingCall{CallID: "c", Answer: store.CommandToolResult}))
		if ok, err := f.ReleaseIdle(f.ctx(), l); err != nil || !ok {
			t.Fatal(ok, err)
		}
		_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandToolResult, "c", ""))
		f.must(err)
		l = f.claim(l.Key)
		if got := claims(); got != 1 {
			t.Errorf("%d claims since the turn was parked", got)
		}
		f.submitTurn(l.Key, "t2")
		again()
		next := "t2"
		w := finish(l, "t1")
		w.ActiveTurn = &next
		w.Turns = append(w.Turns, turnIn(l.Key, "t2", sessionv1.TurnState_TURN_STATE_RUNNING))
		f.commit(w)
		if got := claims(); got != 0 {
			t.Errorf("%d claims of the next turn", got)
		}
	})
}
