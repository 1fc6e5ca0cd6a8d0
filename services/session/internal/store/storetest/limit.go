package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testCapsAndBuckets(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a bucket gives what it has", func(t *testing.T) {
		f := newFixture(t, open)
		lease := func(tenant string, want int64, rate float64) int64 {
			t.Helper()
			n, err := f.LeaseTokens(f.ctx(), store.TokenLease{Tenant: tenant, Bucket: "b", Rate: rate, Burst: 10, Want: want})
			f.must(err)
			return n
		}
		for _, c := range []struct {
			tenant string
			want   int64
			rate   float64
			got    int64
		}{
			{"acme", 4, 1e-6, 4}, {"acme", 10, 1e-6, 6}, {"acme", 1, 1e-6, 0}, {"globex", 3, 1e-6, 3}, {"acme", 1, 1e-6, 0},
			{"acme", 10, 1e9, 10}, // refilled since, and no more than full
		} {
			if got := lease(c.tenant, c.want, c.rate); got != c.got {
				t.Errorf("%d tokens of %s: %d, want %d", c.want, c.tenant, got, c.got)
			}
		}
	})
	t.Run("a token is given once", func(t *testing.T) {
		f := newFixture(t, open)
		var total atomic.Int64
		together(8, func(int) {
			for range 5 {
				n, err := f.LeaseTokens(f.ctx(), store.TokenLease{Tenant: "acme", Bucket: "b", Rate: 1e-6, Burst: 20, Want: 3})
				if err != nil {
					t.Error(err)
				}
				total.Add(n)
			}
		})
		if total.Load() != 20 {
			t.Errorf("%d tokens were given, of 20", total.Load())
		}
	})
	t.Run("there are no more sessions than a cap allows", func(t *testing.T) {
		f := newFixture(t, open)
		create := func(id, user string, caps ...store.Cap) error {
			n := newSession(key(id))
			n.User, n.Caps, n.Request = user, caps, request("r"+id)
			_, err := f.CreateSession(f.ctx(), n)
			return err
		}
		var made atomic.Int64
		together(8, func(i int) {
			switch err := create(fmt.Sprintf("s%d", i), "ann", store.Cap{Most: 3}, store.Cap{User: "ann", Most: 5}); {
			case err == nil:
				made.Add(1)
			case !overCap(err, "sessions", ""):
				t.Errorf("session %d: %v", i, err)
			}
		})
		if made.Load() != 3 {
			t.Errorf("%d sessions were made, of 3", made.Load())
		}
		f.must(create("other", "bob", store.Cap{Most: 4}, store.Cap{User: "bob", Most: 1}))
		if err := create("more", "bob", store.Cap{Most: 9}, store.Cap{User: "bob", Most: 1}); !overCap(err, "sessions", "bob") {
			t.Errorf("a second session of bob: %v", err)
		}
		if err := create("other", "bob", store.Cap{Most: 1}); err != nil {
			t.Errorf("a repeated request: %v", err)
		}
	})
	t.Run("there are no more unfinished turns than a cap allows", func(t *testing.T) {
		f := newFixture(t, open)
		submit := func(k store.Key, id string) error {
			n := newTurn(k, id)
			n.Caps = []store.Cap{{Most: 3}}
			_, err := f.Submit(f.ctx(), n)
			return err
		}
		l := f.active("one")
		f.create(key("two"))
		var made atomic.Int64
		together(6, func(i int) {
			switch err := submit(key([]string{"one", "two"}[i%2]), fmt.Sprintf("n%d", i)); {
			case err == nil:
				made.Add(1)
			case !overCap(err, "turns", ""):
				t.Errorf("turn %d: %v", i, err)
			}
		})
		if made.Load() != 2 {
			t.Errorf("%d turns were accepted beside the active one, of 2", made.Load())
		}
		f.commit(finish(l, "t1"))
		f.must(submit(key("two"), "last"))
		if err := submit(key("two"), "beyond"); !overCap(err, "turns", "") {
			t.Errorf("a turn beyond the cap: %v", err)
		}
	})
	t.Run("each user has a cap of unfinished turns", func(t *testing.T) {
		f := newFixture(t, open)
		submit := func(user, id string) error {
			n := newSession(key("of-" + id))
			n.User = user
			_, err := f.CreateSession(f.ctx(), n)
			f.must(err)
			s := newTurn(n.Key, id)
			s.Caps = []store.Cap{{Most: 9}, {User: user, Most: 2}}
			_, err = f.Submit(f.ctx(), s)
			return err
		}
		f.must(submit("ann", "a1"))
		f.must(submit("bob", "b1"))
		f.must(submit("ann", "a2"))
		if err := submit("ann", "a3"); !overCap(err, "turns", "ann") {
			t.Errorf("a third turn of ann: %v", err)
		}
		f.must(submit("bob", "b2"))
	})
	t.Run("a cap refuses no turn that corrects another", func(t *testing.T) { testCorrections(newFixture(t, open)) })
}

func testCorrections(f *fixture) {
	submit := func(session, id string, corrects func(*store.Submit)) error {
		n := newTurn(key(session), id)
		n.Caps = []store.Cap{{Most: 2}, {User: "ann", Most: 2}}
		corrects(&n)
		_, err := f.Submit(f.ctx(), n)
		return err
	}
	for _, id := range []string{"active", "queued", "idle"} {
		n := newSession(key(id))
		n.User = "ann"
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
	}
	f.submitTurn(key("active"), "t1")
	l := f.claim(key("active"))
	f.commit(start(l, "t1", f.inbox(l)...))
	f.submitTurn(key("queued"), "t1")
	for _, c := range []struct {
		name     string
		corrects func(*store.Submit)
	}{
		{"interrupt", func(n *store.Submit) { n.InterruptActive = true }},
		{"rollback", func(n *store.Submit) { n.RollbackActive = true }},
		{"steer", func(n *store.Submit) { n.SteerActive = true }},
	} {
		for _, session := range []string{"active", "queued"} {
			if err := submit(session, c.name, c.corrects); err != nil {
				f.Errorf("%s of the %s turn: %v", c.name, session, err)
			}
		}
		if err := submit("idle", c.name, c.corrects); !overCap(err, "turns", "") {
			f.Errorf("%s without a turn: %v", c.name, err)
		}
	}
	for _, session := range []string{"active", "queued"} {
		if err := submit(session, "more", func(*store.Submit) {}); !overCap(err, "turns", "") {
			f.Errorf("one more turn behind the %s one: %v", session, err)
		}
	}
	var got []string
	for _, c := range f.inbox(l) {
		got = append(got, string(c.Kind)+" "+c.TurnID)
	}
	want := []string{"interrupt t1", "turn interrupt", "rollback t1", "turn rollback", "turn steer"}
	if d := cmp.Diff(want, got); d != "" {
		f.Error(d)
	}
}

func overCap(err error, what, user string) bool {
	var c *store.CapError
	return errors.As(err, &c) && c.Tenant == "acme" && c.What == what && c.User == user
}

// together calls f from n goroutines and waits for them.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
