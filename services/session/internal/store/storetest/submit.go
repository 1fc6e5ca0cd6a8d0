package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func interrupt(k store.Key, cancelQueued bool) store.Submit {
	return store.Submit{
		Key: k, CancelQueued: cancelQueued,
		Command: store.Command{Kind: store.CommandInterrupt, Body: []byte("interrupt"), User: "bob"},
	}
}

func testSubmit(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a turn is queued and its command is in the inbox", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		a, err := f.Submit(f.ctx(), newTurn(k, "t1"))
		f.must(err)
		if a != (store.Answer{Value: "t1"}) {
			t.Errorf("answer %+v", a)
		}
		turn, err := f.GetTurn(f.ctx(), k, "t1")
		f.must(err)
		want := &sessionv1.Turn{
			Name: turnName(k, "t1"), State: sessionv1.TurnState_TURN_STATE_QUEUED, TraceId: "trace of t1",
			AfterSeq: 1, CreateTime: turn.CreateTime,
		}
		if d := cmp.Diff(want, turn, protocmp.Transform()); d != "" {
			t.Error(d)
		}
		l := f.claim(k)
		snap, err := f.Load(f.ctx(), l)
		f.must(err)
		commands := []store.Command{{ID: 1, Kind: store.CommandTurn, TurnID: "t1", Body: []byte("body of t1"), User: "ada", Time: turn.CreateTime.AsTime()}}
		if d := cmp.Diff(commands, snap.Commands); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(commands, f.inbox(l)); d != "" {
			t.Error(d)
		}
		if snap.Active != nil || snap.Session.ActiveTurn != "" || snap.Claims != 1 {
			t.Errorf("snapshot %+v", snap)
		}
	})

	t.Run("a turn's id is taken once in a session", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		f.submitTurn(k, "t1")
		if _, err := f.Submit(f.ctx(), newTurn(k, "t1")); !errors.Is(err, store.ErrExists) {
			t.Errorf("got %v", err)
		}
		f.submitTurn(f.create(key("s2")), "t1")
	})

	t.Run("commands keep their order and their numbers are used once", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		f.submitTurn(k, "b")
		f.submitTurn(k, "a")
		l := f.claim(k)
		f.commit(store.Write{Lease: l, Consume: []int64{1, 2}})
		f.submitTurn(k, "c")
		want := []store.Command{{ID: 3, Kind: store.CommandTurn, TurnID: "c", Body: []byte("body of c"), User: "ada"}}
		if d := cmp.Diff(want, f.inbox(l), cmpopts.IgnoreFields(store.Command{}, "Time")); d != "" {
			t.Error(d)
		}
	})

	t.Run("a turn can ask to be refused when another is active or queued", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		first, second := newTurn(k, "t1"), newTurn(k, "t2")
		first.RejectIfActive, second.RejectIfActive = true, true
		_, err := f.Submit(f.ctx(), first)
		f.must(err)
		if _, err := f.Submit(f.ctx(), second); !errors.Is(err, store.ErrTurnActive) {
			t.Errorf("behind a queued turn: %v", err)
		}
		l := f.claim(k)
		f.commit(start(l, "t1", f.inbox(l)...))
		if _, err := f.Submit(f.ctx(), second); !errors.Is(err, store.ErrTurnActive) {
			t.Errorf("behind an active turn: %v", err)
		}
		f.commit(finish(l, "t1"))
		_, err = f.Submit(f.ctx(), second)
		f.must(err)
	})

	t.Run("no more turns wait than may", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		for range store.MaxQueuedTurns {
			f.submitTurn(k, f.nextID("t"))
		}
		if _, err := f.Submit(f.ctx(), newTurn(k, "more")); !errors.Is(err, store.ErrQueueFull) {
			t.Errorf("got %v", err)
		}
		if _, err := f.GetTurn(f.ctx(), k, "more"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the refused turn: %v", err)
		}
		l := f.claim(k)
		f.commit(start(l, "t1", f.inbox(l)[0]))
		f.submitTurn(k, "more")
	})

	t.Run("a kind of command that there is not is refused", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		if _, err := f.Submit(f.ctx(), store.Submit{Key: k, Command: store.Command{Kind: "dance"}}); err == nil {
			t.Error("accepted")
		}
	})

	t.Run("of many at once none is lost", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		var wg sync.WaitGroup
		for range 20 {
			id := f.nextID("t")
			wg.Go(func() {
				if _, err := f.Submit(f.ctx(), newTurn(k, id)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var ids []int64
		for _, c := range f.inbox(f.claim(k)) {
			ids = append(ids, c.ID)
		}
		if len(ids) != 20 || ids[0] != 1 || ids[19] != 20 || !slices.IsSorted(ids) {
			t.Errorf("commands %v", ids)
		}
	})
	testInterrupts(t, open)
	testArrivals(t, open)
}

func testInterrupts(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name           string
		active, queued bool
		submit         func(k store.Key) store.Submit
		value          string
		commands       []store.Command
	}{
		{"an interrupt with nothing to stop puts no command", false, false, func(k store.Key) store.Submit { return interrupt(k, true) }, "", nil},
		{
			"an interrupt names the active turn", true, true,
			func(k store.Key) store.Submit { return interrupt(k, false) }, "active",
			[]store.Command{{Kind: store.CommandTurn, TurnID: "queued"}, {Kind: store.CommandInterrupt, TurnID: "active"}},
		},
		{
			"an interrupt that comes before the turn is active names the one that will be", false, true,
			func(k store.Key) store.Submit { return interrupt(k, false) }, "queued",
			[]store.Command{{Kind: store.CommandTurn, TurnID: "queued"}, {Kind: store.CommandInterrupt, TurnID: "queued"}},
		},
		{
			"a turn that interrupts comes right behind its interrupt", true, false,
			func(k store.Key) store.Submit { s := newTurn(k, "new"); s.InterruptActive = true; return s }, "new",
			[]store.Command{{Kind: store.CommandInterrupt, TurnID: "active"}, {Kind: store.CommandTurn, TurnID: "new"}},
		},
		{
			"a turn that would interrupt a quiet session does not", false, false,
			func(k store.Key) store.Submit { s := newTurn(k, "new"); s.InterruptActive = true; return s }, "new",
			[]store.Command{{Kind: store.CommandTurn, TurnID: "new"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, open)
			k := f.create(key("s1"))
			var l store.Lease
			if c.active {
				f.submitTurn(k, "active")
				l = f.claim(k)
				f.commit(start(l, "active", f.inbox(l)...))
			}
			if c.queued {
				f.submitTurn(k, "queued")
			}
			a, err := f.Submit(f.ctx(), c.submit(k))
			f.must(err)
			if a != (store.Answer{Value: c.value}) {
				t.Errorf("answer %+v", a)
			}
			if c.commands == nil {
				f.claimsNothing(k)
				return
			}
			if !c.active {
				l = f.claim(k)
			}
			if d := cmp.Diff(c.commands, f.inbox(l), cmpopts.IgnoreFields(store.Command{}, "ID", "Body", "User", "Time")); d != "" {
				t.Error(d)
			}
		})
	}
}

func testTurns(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("turns are listed as they were accepted", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		for _, id := range []string{"c", "a", "b"} {
			f.submitTurn(k, id)
		}
		for _, c := range []struct {
			after string
			limit int
			want  []string
		}{
			{"", 0, []string{"c", "a", "b"}},
			{"", 2, []string{"c", "a"}},
			{"c", 1, []string{"a"}},
			{"a", 5, []string{"b"}},
			{"b", 5, nil},
		} {
			turns, err := f.ListTurns(f.ctx(), k, c.after, c.limit)
			f.must(err)
			var want []string
			for _, id := range c.want {
				want = append(want, turnName(k, id))
			}
			if d := cmp.Diff(want, names(turns), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("after %q, at most %d: %s", c.after, c.limit, d)
			}
		}
		if _, err := f.ListTurns(f.ctx(), k, "none", 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("behind a turn that is not there: %v", err)
		}
	})
}
