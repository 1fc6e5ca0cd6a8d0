package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testAttachments(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a replica says what is attached to it", func(t *testing.T) {
		f := newFixture(t, open)
		put := func(replica string, all ...store.Attachment) {
			t.Helper()
			f.must(f.PutAttachments(f.ctx(), replica, all, time.Hour))
		}
		a := store.Attachment{Tenant: "acme", Runtime: "a", Replica: "one", Processes: 1, Places: 10, Turns: 3}
		b := store.Attachment{Tenant: "acme", Runtime: "b", Replica: "one", Processes: 2, Places: 20}
		other := store.Attachment{Tenant: "acme", Runtime: "a", Replica: "two", Processes: 1, Places: 1, Turns: 1}
		put("one", a, b, store.Attachment{Tenant: "globex", Runtime: "a", Replica: "one", Processes: 1})
		put("two", other)
		f.attached("", a, other, b)
		f.attached("a", a, other)
		a.Turns = 4
		put("one", a)
		f.attached("", a, other)
		put("one")
		f.attached("", other)
	})
	t.Run("what is not said again does not count", func(t *testing.T) {
		f := newFixture(t, open)
		f.must(f.PutAttachments(f.ctx(), "one", []store.Attachment{{Tenant: "acme", Runtime: "a", Processes: 1}}, -time.Millisecond))
		f.attached("")
	})
	t.Run("a session that is passed on is claimed by one replica", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		f.submitTurn(k, "t1")
		l := f.claim(k)
		f.must(f.PassOn(f.ctx(), l, "two", time.Hour))
		f.claimsNothing(k)
		got, err := f.Claim(f.ctx(), store.Claim{Replica: "two", TTL: time.Hour, Limit: 1})
		f.must(err)
		if len(got) != 1 || got[0].Epoch != l.Epoch+1 || got[0].Claims != l.Claims || got[0].FenceDue {
			t.Fatalf("the other replica claims %+v after %+v", got, l)
		}
		f.must(f.Release(f.ctx(), got[0]))
		f.must(f.PassOn(f.ctx(), f.claim(k), "three", -time.Millisecond))
		f.claim(k) // its time is over
	})
}

func (f *fixture) attached(runtime string, want ...store.Attachment) {
	f.Helper()
	got, err := f.ListAttachments(f.ctx(), "acme", runtime)
	f.must(err)
	if d := cmp.Diff(want, got); d != "" {
		f.Errorf("the attachments of %q differ (-want +got):\n%s", runtime, d)
	}
}
