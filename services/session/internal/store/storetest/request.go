package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testRequestIDs(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("the same request again gets the first answer and changes nothing", func(t *testing.T) {
		f := newFixture(t, open)
		n := newSession(key("s1"))
		n.Request = request("r")
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		n.Session = "s2" // as by a server that assigns the ids
		a, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		if a != (store.Answer{Value: "s1", Replayed: true}) {
			t.Errorf("answer %+v", a)
		}
		if _, err := f.GetSession(f.ctx(), n.Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the second session: %v", err)
		}
	})

	t.Run("a repetition gets the key of the latest request", func(t *testing.T) {
		f := newFixture(t, open)
		o, later := store.Owner{Tenant: "acme", User: "ann"}, time.Now().Add(time.Hour)
		for i, c := range []struct {
			owner       store.Owner
			digest, key string
			repeated    bool
			until       time.Time
			want        string
		}{
			{o, "d", "k1", true, later, "k1"}, // its first attempt has never arrived
			{o, "d", "k2", false, later, "k2"},
			{o, "d", "k3", false, later, "k3"},
			{o, "d", "k4", true, later, "k3"},
			{o, "d", "k5", true, later, "k3"},
			{o, "other", "k6", true, later, "k6"},
			{store.Owner{Tenant: "acme", User: "bob"}, "d", "k7", true, later, "k7"},
			{store.Owner{Tenant: "globex", User: "ann"}, "d", "k8", true, later, "k8"},
			{o, "old", "k9", false, time.Now().Add(-time.Hour), "k9"},
			{o, "old", "k10", true, later, "k10"},
		} {
			if got, err := f.ClaimRequestKey(f.ctx(), c.owner, c.digest, c.key, c.repeated, c.until); got != c.want || err != nil {
				t.Errorf("%d: %q, %v, want %q", i, got, err, c.want)
			}
		}
	})

	t.Run("a turn's request again gets the first turn", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		first := newTurn(k, "t1")
		first.Request = request("r")
		first.Request.Parent = "sessions/" + k.Session
		_, err := f.Submit(f.ctx(), first)
		f.must(err)
		second := newTurn(k, "t2")
		second.Request = first.Request
		second.RejectIfActive = true // the stored answer counts, not the answer of the current state
		a, err := f.Submit(f.ctx(), second)
		f.must(err)
		if a != (store.Answer{Value: "t1", Replayed: true}) {
			t.Errorf("answer %+v", a)
		}
		if turns, err := f.ListTurns(f.ctx(), k, "", 0); err != nil || len(turns) != 1 {
			t.Errorf("turns %v, %v", turns, err)
		}
		method := first.Request.Method
		if found, err := f.TurnOfRequest(f.ctx(), k, "r", "none", method); err != nil || found.GetName() != first.Turn.Turn.Name {
			t.Errorf("the turn of the request: %v, %v", found, err)
		}
		for _, c := range [][2]string{{"other", method}, {"r", "none"}} {
			if found, err := f.TurnOfRequest(f.ctx(), k, c[0], c[1]); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a turn of no request %v: %v, %v", c, found, err)
			}
		}
		if c := f.inbox(f.claim(k)); len(c) != 1 {
			t.Errorf("inbox %v", c)
		}
	})

	t.Run("the same id for another request is refused", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		n := newTurn(k, "t1")
		n.Request = request("r")
		_, err := f.Submit(f.ctx(), n)
		f.must(err)
		n = newTurn(k, "t2")
		n.Request = request("r")
		n.Request.Digest = []byte("another")
		if _, err := f.Submit(f.ctx(), n); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("submit: %v", err)
		}
		s := newSession(key("s2"))
		s.Request = request("c")
		_, err = f.CreateSession(f.ctx(), s)
		f.must(err)
		s.Session, s.Request.Digest = "s3", nil
		if _, err := f.CreateSession(f.ctx(), s); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("create: %v", err)
		}
	})

	for name, change := range map[string]func(*store.NewSession){
		"another method": func(n *store.NewSession) { n.Request.Method = "/other" },
		"another parent": func(n *store.NewSession) { n.Request.Parent = "other" },
		"another tenant": func(n *store.NewSession) { n.Tenant = "other" },
		"another id":     func(n *store.NewSession) { n.Request.ID = "R" },
		"no id at all":   func(n *store.NewSession) { n.Request.ID = "" },
	} {
		t.Run("a request is another one with "+name, func(t *testing.T) {
			f := newFixture(t, open)
			n := newSession(key("s1"))
			n.Request = request("r")
			_, err := f.CreateSession(f.ctx(), n)
			f.must(err)
			n.Session = "s2"
			change(&n)
			a, err := f.CreateSession(f.ctx(), n)
			f.must(err)
			if a.Replayed || a.Value != n.Session {
				t.Errorf("answer %+v", a)
			}
		})
	}

	t.Run("a failed request is not remembered", func(t *testing.T) {
		f := newFixture(t, open)
		f.create(key("s1"))
		n := newSession(key("s1"))
		n.Request = request("r")
		if _, err := f.CreateSession(f.ctx(), n); !errors.Is(err, store.ErrExists) {
			t.Fatal(err)
		}
		n.Session = "s2"
		a, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		if a.Replayed {
			t.Error("replayed")
		}
	})

	t.Run("a request is forgotten when its time is over", func(t *testing.T) {
		f := newFixture(t, open)
		n := newSession(key("s1"))
		n.Request = request("r")
		n.Request.KeepUntil = time.Now().Add(-time.Minute)
		for _, id := range []string{"s1", "s2", "s3"} {
			n.Session = id
			a, err := f.CreateSession(f.ctx(), n)
			f.must(err)
			if a.Replayed || a.Value != id {
				t.Errorf("answer %+v", a)
			}
		}
	})

	t.Run("a create that is kept for a time outlives its session", func(t *testing.T) {
		f := newFixture(t, open)
		n := newSession(key("s1"))
		n.Request = request("r")
		n.Request.KeepUntil = time.Now().Add(time.Hour)
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		_, err = f.DeleteSession(f.ctx(), n.Key, store.Request{})
		f.must(err)
		a, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		if !a.Replayed {
			t.Errorf("a late repetition made the session anew: %+v", a)
		}
	})

	t.Run("of many at once one is done and all get its answer", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		created, submitted := make([]store.Answer, 8), make([]store.Answer, 8)
		var wg sync.WaitGroup
		for i := range created {
			id := f.nextID("x")
			wg.Go(func() {
				n := newSession(key(id))
				n.Request = request("create")
				var err error
				if created[i], err = f.CreateSession(f.ctx(), n); err != nil {
					t.Error(err)
				}
				s := newTurn(k, id)
				s.Request = request("submit")
				if submitted[i], err = f.Submit(f.ctx(), s); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for name, answers := range map[string][]store.Answer{"create": created, "submit": submitted} {
			fresh := 0
			for _, a := range answers {
				if !a.Replayed {
					fresh++
				}
				if a.Value != answers[0].Value {
					t.Errorf("%s: %+v and %+v", name, a, answers[0])
				}
			}
			if fresh != 1 {
				t.Errorf("%s: %d were done", name, fresh)
			}
		}
	})
}
