package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func checkpoint(k store.Key, id string, seq int64) *sessionv1.Checkpoint {
	return &sessionv1.Checkpoint{Name: "sessions/" + k.Session + "/checkpoints/" + id, Description: "of " + k.Tenant, Seq: seq, Snapshot: "s" + id}
}

// rewinds is a fixture for checkpoints.
type rewinds struct{ *fixture }

// checkpoints returns the ids of a session's checkpoints, the last one first.
func (f rewinds) checkpoints(k store.Key, before int64, limit int) string {
	f.Helper()
	all, err := f.ListCheckpoints(f.ctx(), k, before, limit)
	f.must(err)
	var ids []string
	for _, c := range all {
		_, id, _ := strings.Cut(c.Name, "/checkpoints/")
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

// gained claims a session and adds checkpoints to it, the number of each one above
// the one before.
func (f rewinds) gained(k store.Key, ids ...string) store.Lease {
	f.Helper()
	f.create(k)
	f.submitTurn(k, "t1")
	l := f.claim(k)
	w := start(l, "t1", f.inbox(l)...)
	for i, id := range ids {
		w.Checkpoints = append(w.Checkpoints, checkpoint(k, id, int64(i+1)))
	}
	f.commit(w)
	return l
}

func testCheckpoints(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("checkpoints are read as they were written, the last one first", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		k := key("s")
		f.gained(k, "z", "a", "m")
		got, err := f.GetCheckpoint(f.ctx(), k, "a")
		f.must(err)
		if got.CreateTime == nil {
			t.Error("it does not say when it was made")
		}
		want := checkpoint(k, "a", 2)
		want.CreateTime = got.CreateTime
		if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
			t.Error(d)
		}
		for _, c := range []struct {
			before int64
			limit  int
			want   string
		}{{0, 0, "m a z"}, {0, 2, "m a"}, {2, 2, "z"}, {1, 0, ""}} {
			if d := cmp.Diff(c.want, f.checkpoints(k, c.before, c.limit)); d != "" {
				t.Errorf("before %d, %d of them: %s", c.before, c.limit, d)
			}
		}
	})

	t.Run("what is not there is not found", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		k := f.create(key("s"))
		_, none := f.GetCheckpoint(f.ctx(), k, "x")
		_, list := f.ListCheckpoints(f.ctx(), key("other"), 0, 0)
		for _, err := range []error{none, list} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		}
	})

	t.Run("a write removes some and adds others, a later one of the same commit removes these", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		l := f.gained(key("s"), "a", "b", "c")
		errs, err := f.Commit(f.ctx(), []store.Write{
			{Lease: l, DropCheckpoints: []string{"b", "c", "never"}, Checkpoints: []*sessionv1.Checkpoint{checkpoint(l.Key, "d", 7), checkpoint(l.Key, "e", 8)}},
			{Lease: l, DropCheckpoints: []string{"d"}},
		})
		f.must(errors.Join(append(errs, err)...))
		if d := cmp.Diff("e a", f.checkpoints(l.Key, 0, 0)); d != "" {
			t.Error(d)
		}
	})

	t.Run("a write of a lost lease leaves them, and one with a foreign name does", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		l := f.gained(key("s"), "a")
		stale := l
		stale.Epoch--
		foreign := checkpoint(key("elsewhere"), "x", 9)
		errs, err := f.Commit(f.ctx(), []store.Write{
			{Lease: stale, DropCheckpoints: []string{"a"}},
			{Lease: l, DropCheckpoints: []string{"a"}, Checkpoints: []*sessionv1.Checkpoint{foreign}},
		})
		f.must(err)
		if !errors.Is(errs[0], store.ErrStaleEpoch) || errs[1] == nil {
			t.Errorf("got %v", errs)
		}
		if d := cmp.Diff("a", f.checkpoints(l.Key, 0, 0)); d != "" {
			t.Error(d)
		}
	})

	t.Run("they are of their tenant and go with their session", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		mine, other := store.Key{Tenant: "acme", Session: "s"}, store.Key{Tenant: "other", Session: "s"}
		l := f.gained(mine, "a")
		f.gained(other, "a")
		f.commit(finish(l, "t1"))
		_, err := f.DeleteSession(f.ctx(), mine, store.Request{})
		f.must(err)
		got, err := f.GetCheckpoint(f.ctx(), other, "a")
		if err != nil || got.Description != "of other" {
			t.Errorf("the other tenant's: %v, %v", got, err)
		}
		f.clean(mine)
		f.create(mine)
		if d := cmp.Diff("", f.checkpoints(mine, 0, 0)); d != "" {
			t.Errorf("after the session was made again: %s", d)
		}
	})

	t.Run("rewinds", func(t *testing.T) { testRewind(t, open) })
}

func rewind(k store.Key, id string) store.Submit {
	return store.Submit{Key: k, Command: store.Command{Kind: store.CommandRewind, CallID: id, Body: []byte("to a")}, Request: request("rewind " + id)}
}

func testRewind(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("one is a command that the session shows until it is consumed", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		k := f.create(key("s"))
		for _, replayed := range []bool{false, true} {
			a, err := f.Submit(f.ctx(), rewind(k, "r"))
			if d := cmp.Diff(store.Answer{Value: "r.1", Replayed: replayed}, a); err != nil || d != "" {
				t.Error(err, d)
			}
		}
		listed, err := f.ListSessions(f.ctx(), store.SessionPage{Tenant: k.Tenant})
		f.must(err)
		if !f.session(k).Rewinding || !listed[0].Rewinding {
			t.Error("the session does not say that it is being rewound")
		}
		l := f.claim(k)
		commands := f.inbox(l)
		if len(commands) != 1 || commands[0].Kind != store.CommandRewind || commands[0].CallID != "r" || string(commands[0].Body) != "to a" {
			t.Fatalf("the inbox is %v", commands)
		}
		f.commit(store.Write{Lease: l, Consume: []int64{commands[0].ID}})
		if f.session(k).Rewinding {
			t.Error("the session says for ever that it is being rewound")
		}
	})

	t.Run("one is refused with a turn active or queued", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		k := f.create(key("s"))
		f.submitTurn(k, "t1")
		refused := func(when string) {
			t.Helper()
			if _, err := f.Submit(f.ctx(), rewind(k, "r")); !errors.Is(err, store.ErrTurnActive) {
				t.Errorf("%s: %v", when, err)
			}
		}
		refused("queued")
		l := f.claim(k)
		f.commit(start(l, "t1", f.inbox(l)...))
		refused("active")
		f.commit(wait(l, "t1"))
		refused("waiting")
		f.commit(finish(l, "t1"))
		if _, err := f.Submit(f.ctx(), rewind(k, "r")); err != nil {
			t.Errorf("after the turn: %v", err)
		}
	})

	t.Run("a session with one in its inbox has work, and does not go by itself", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		k := f.create(key("s"))
		_, err := f.Submit(f.ctx(), rewind(k, "r"))
		f.must(err)
		if gone, err := f.DeleteIdle(f.ctx(), -time.Hour, 0); err != nil || len(gone) > 0 {
			t.Errorf("gone: %v, %v", gone, err)
		}
		f.claim(k)
	})

	t.Run("a manual checkpoint may be asked for at any time", func(t *testing.T) {
		f := rewinds{newFixture(t, open)}
		l := f.active("s")
		a, err := f.Submit(f.ctx(), store.Submit{Key: l.Key, Command: store.Command{Kind: store.CommandCheckpoint, CallID: "c"}, Request: request("c")})
		if err != nil || a.Value != "c.1" || len(f.inbox(l)) != 1 {
			t.Errorf("got %v, %v", a, err)
		}
		if _, err := f.Submit(f.ctx(), store.Submit{Key: l.Key, Command: store.Command{Kind: store.CommandCheckpoint}, Request: request("d")}); err == nil {
			t.Error("one without an id was accepted")
		}
	})
}
