package storetest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testCommit(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a sum of usages that does not fit is the largest number", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.held("s1", "t1")
		const most = math.MaxInt64
		used := &sessionv1.Usage{InputTokens: most, OutputTokens: most - 1, CacheReadTokens: most, CacheWriteTokens: most, ThinkingTokens: 1, CostNanoUsd: most}
		f.commit(start(l, "t1", f.inbox(l)...))
		for range 2 {
			f.commit(store.Write{Lease: l, AddUsage: used})
		}
		want := &sessionv1.Usage{InputTokens: most, OutputTokens: most, CacheReadTokens: most, CacheWriteTokens: most, ThinkingTokens: 2, CostNanoUsd: most}
		if d := cmp.Diff(want, f.session(l.Key).Usage, protocmp.Transform()); d != "" {
			t.Error(d)
		}
	})
	t.Run("a write changes all that it names", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.held("s1", "t1")
		before := f.session(l.Key)
		w := start(l, "t1", f.inbox(l)...)
		head := "m2"
		w.LastSeq, w.Events = 1, []*sessionv1.Event{delta(2, 2, "a"), delta(3, 7, "b")}
		w.Messages, w.Head = []*sessionv1.Message{message(l.Key, "m1", "", "one"), message(l.Key, "m2", "m1", "two")}, &head
		w.AddUsage = &sessionv1.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ThinkingTokens: 5, CostNanoUsd: 6}
		w.FinishedTurns = 2
		w.Turns[0].Turn.Model = "scripted:x"
		f.commit(w)
		f.commit(store.Write{Lease: l, AddUsage: w.AddUsage, FinishedTurns: 1})

		got := f.session(l.Key)
		want := &sessionv1.Session{
			Name: "sessions/s1", Agent: "agents/coder", AgentRevision: "r1", LastSeq: 7,
			Head: "sessions/s1/messages/m2", ActiveTurn: "sessions/s1/turns/t1", FinishedTurns: 3,
			Usage:      &sessionv1.Usage{InputTokens: 2, OutputTokens: 4, CacheReadTokens: 6, CacheWriteTokens: 8, ThinkingTokens: 10, CostNanoUsd: 12},
			CreateTime: before.CreateTime, UpdateTime: got.UpdateTime, State: sessionv1.SessionState_SESSION_STATE_RUNNING,
		}
		if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
			t.Error(d)
		}
		if got.UpdateTime.AsTime().Before(before.UpdateTime.AsTime()) {
			t.Error("the update time went back")
		}
		snap, err := f.Load(f.ctx(), l)
		f.must(err)
		if d := cmp.Diff(w.Turns[0], snap.Active, protocmp.Transform()); d != "" {
			t.Error(d)
		}
		got.State = sessionv1.SessionState_SESSION_STATE_UNSPECIFIED // it is for sessions that are shown
		if d := cmp.Diff(got, snap.Session, protocmp.Transform()); d != "" {
			t.Error(d)
		}
		if len(snap.Commands) != 0 {
			t.Errorf("commands %v", snap.Commands)
		}
		turn, err := f.GetTurn(f.ctx(), l.Key, "t1")
		f.must(err)
		if d := cmp.Diff(w.Turns[0].Turn, turn, protocmp.Transform()); d != "" {
			t.Error(d)
		}
	})

	t.Run("nothing is a commit too", func(t *testing.T) {
		f := newFixture(t, open)
		errs, err := f.Commit(f.ctx(), nil)
		if err != nil || len(errs) != 0 {
			t.Error(errs, err)
		}
	})

	t.Run("a refused write harms no other and leaves nothing", func(t *testing.T) {
		f := newFixture(t, open)
		good, stale, other := f.active("good"), f.active("stale"), f.active("other")
		stale.Epoch--
		write := func(l store.Lease) store.Write {
			w := finish(l, "t1")
			head := "m"
			w.LastSeq, w.Events = 1, []*sessionv1.Event{delta(2, 2, "x")}
			w.Messages, w.Head = []*sessionv1.Message{message(l.Key, "m", "", "hello")}, &head
			w.Wait = []store.PendingCall{{CallID: "c", Answer: store.CommandToolResult}}
			return w
		}
		f.submitTurn(stale.Key, "t2")
		w := write(stale)
		w.Consume = []int64{1, 2}
		errs, err := f.Commit(f.ctx(), []store.Write{write(good), w, write(other)})
		f.must(err)
		if errs[0] != nil || !errors.Is(errs[1], store.ErrStaleEpoch) || errs[2] != nil {
			t.Fatalf("errors %v", errs)
		}
		for _, l := range []store.Lease{good, other} {
			if s := f.session(l.Key); s.LastSeq != 2 || s.Head == "" || s.ActiveTurn != "" || s.FinishedTurns != 1 {
				t.Errorf("session %v", s)
			}
		}
		stale.Epoch++
		snap, err := f.Load(f.ctx(), stale)
		f.must(err)
		if s := snap.Session; s.LastSeq != 1 || s.Head != "" || s.FinishedTurns != 0 || snap.Active == nil ||
			snap.Active.Turn.State != sessionv1.TurnState_TURN_STATE_RUNNING || len(snap.Commands) != 1 || len(snap.Pending) != 0 {
			t.Errorf("of the refused write something is left: %+v", snap)
		}
	})

	t.Run("writes of the same session follow each other", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		head := "m2"
		call := store.PendingCall{CallID: "c", Answer: store.CommandToolResult}
		errs, err := f.Commit(f.ctx(), []store.Write{
			{
				Lease: l, LastSeq: 1, Events: []*sessionv1.Event{delta(2, 3, "a")}, Wait: []store.PendingCall{call},
				Messages: []*sessionv1.Message{message(l.Key, "m1", "", "one")}, AddUsage: &sessionv1.Usage{InputTokens: 1},
				Turns: []*store.TurnRow{turnIn(l.Key, "t1", sessionv1.TurnState_TURN_STATE_WAITING)},
			},
			{
				Lease: l, LastSeq: 3, Events: []*sessionv1.Event{delta(4, 4, "b")}, Waited: []string{"c"},
				Messages: []*sessionv1.Message{message(l.Key, "m2", "m1", "two")}, Head: &head, AddUsage: &sessionv1.Usage{InputTokens: 1},
				Turns: []*store.TurnRow{turnIn(l.Key, "t1", sessionv1.TurnState_TURN_STATE_RUNNING)},
			},
		})
		f.must(errors.Join(append(errs, err)...))
		snap, err := f.Load(f.ctx(), l)
		f.must(err)
		if snap.Session.LastSeq != 4 || snap.Session.Usage.InputTokens != 2 || len(snap.Pending) != 0 ||
			snap.Active.Turn.State != sessionv1.TurnState_TURN_STATE_RUNNING || snap.Session.Head != messageName(l.Key, "m2") {
			t.Errorf("snapshot %+v", snap)
		}
	})
	t.Run("a message is revised in its place", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		head := "m2"
		one, two := message(l.Key, "m1", "", "one"), message(l.Key, "m2", "m1", "two")
		f.commit(store.Write{Lease: l, Messages: []*sessionv1.Message{one, two}, Head: &head})
		one = proto.CloneOf(one)
		one.Blocks[0].Refusals = []*sessionv1.Refusal{{Model: "p:m", Reason: "not this"}}
		f.commit(store.Write{Lease: l, Revised: []*sessionv1.Message{one}})
		got, err := f.ListMessages(f.ctx(), l.Key, "", "", 0)
		f.must(err)
		if d := cmp.Diff([]*sessionv1.Message{one, two}, got, protocmp.Transform()); d != "" {
			t.Error(d)
		}
	})
	testMistakes(t, open)
	testLimits(t, open)

	t.Run("what has no time gets the database's, in place", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		e, m := delta(2, 2, "x"), message(l.Key, "m", "", "x")
		e.Time = nil
		f.commit(store.Write{Lease: l, LastSeq: 1, Events: []*sessionv1.Event{e}, Messages: []*sessionv1.Message{m}})
		at := f.session(l.Key).UpdateTime
		if !proto.Equal(e.Time, at) || !proto.Equal(m.CreateTime, at) {
			t.Errorf("times %v and %v, want %v", e.Time, m.CreateTime, at)
		}
		events, err := f.ListEvents(f.ctx(), l.Key, 1, 1, 0)
		f.must(err)
		if d := cmp.Diff(e, events[0], protocmp.Transform()); d != "" {
			t.Error(d)
		}
	})
}

// testLimits checks large and interrupted writes.
func testLimits(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a commit may be large", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		w := store.Write{Lease: l, LastSeq: 1}
		for seq := int64(2); seq < 2002; seq++ {
			w.Events = append(w.Events, delta(seq, seq, "x"))
		}
		w.Events = append(w.Events, delta(2002, 2002, strings.Repeat("0123456789abcdef", 1<<16)))
		f.commit(w)
		got, err := f.ListEvents(f.ctx(), l.Key, 1, 0, 0)
		f.must(err)
		if d := cmp.Diff(w.Events, got, protocmp.Transform()); d != "" {
			t.Errorf("%d events are not what was written", len(got))
		}
	})

	t.Run("a call that was given up changes nothing and says so", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		ctx, cancel := context.WithCancel(f.ctx())
		cancel()
		_, create := f.CreateSession(ctx, newSession(key("s2")))
		_, submit := f.Submit(ctx, newTurn(l.Key, "t2"))
		_, commit := f.Commit(ctx, []store.Write{{Lease: l, LastSeq: 1, Events: []*sessionv1.Event{delta(2, 2, "x")}}})
		_, get := f.GetSession(ctx, l.Key)
		for name, err := range map[string]error{"create": create, "submit": submit, "commit": commit, "get": get} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := f.page(store.SessionPage{Tenant: "acme"}); len(got) != 1 || got[0].LastSeq != 1 {
			t.Errorf("sessions %v", got)
		}
		if c := f.inbox(l); len(c) != 0 {
			t.Errorf("commands %v", c)
		}
	})
}

// testMistakes checks that an invalid write is refused alone.
func testMistakes(t *testing.T, open func(t *testing.T) store.Store) {
	id := func(s string) *string { return &s }
	for _, c := range []struct {
		name string
		make func(l store.Lease) store.Write
	}{
		{"events that leave a gap", func(store.Lease) store.Write {
			return store.Write{LastSeq: 1, Events: []*sessionv1.Event{delta(3, 3, "x")}}
		}},
		{"events that overlap", func(store.Lease) store.Write {
			return store.Write{LastSeq: 1, Events: []*sessionv1.Event{delta(2, 4, "x"), delta(4, 5, "y")}}
		}},
		{"an event that ends before it begins", func(store.Lease) store.Write {
			return store.Write{LastSeq: 1, Events: []*sessionv1.Event{delta(2, 1, "x")}}
		}},
		{"events behind another number", func(store.Lease) store.Write {
			return store.Write{LastSeq: 2, Events: []*sessionv1.Event{delta(3, 3, "x")}}
		}},
		{"an event of another session's turn", func(store.Lease) store.Write {
			e := delta(2, 2, "x")
			e.Turn = "sessions/other/turns/t1"
			return store.Write{LastSeq: 1, Events: []*sessionv1.Event{e}}
		}},
		{"invalid text", func(store.Lease) store.Write {
			return store.Write{LastSeq: 1, Events: []*sessionv1.Event{delta(2, 2, "\xff")}}
		}},
		{"a message without its parent", func(l store.Lease) store.Write {
			return store.Write{Messages: []*sessionv1.Message{message(l.Key, "m", "none", "x")}}
		}},
		{"a revision of what is not there", func(l store.Lease) store.Write {
			return store.Write{Revised: []*sessionv1.Message{message(l.Key, "m", "", "x")}}
		}},
		{"a message twice", func(l store.Lease) store.Write {
			return store.Write{Messages: []*sessionv1.Message{message(l.Key, "m", "", "x"), message(l.Key, "m", "", "x")}}
		}},
		{"a message of another session", func(store.Lease) store.Write {
			return store.Write{Messages: []*sessionv1.Message{message(key("other"), "m", "", "x")}}
		}},
		{"a head that is not there", func(store.Lease) store.Write { return store.Write{Head: id("none")} }},
		{"a turn that is not there", func(l store.Lease) store.Write {
			return store.Write{Turns: []*store.TurnRow{turnIn(l.Key, "none", sessionv1.TurnState_TURN_STATE_RUNNING)}}
		}},
		{"a turn under a wrong name", func(l store.Lease) store.Write {
			row := turnIn(l.Key, "t1", sessionv1.TurnState_TURN_STATE_RUNNING)
			row.Turn.Name = "sessions/other/turns/t1"
			return store.Write{Turns: []*store.TurnRow{row}}
		}},
		{"an active turn that is not there", func(store.Lease) store.Write { return store.Write{ActiveTurn: id("none")} }},
		{"a call that waits for a turn", func(store.Lease) store.Write {
			return store.Write{Wait: []store.PendingCall{{CallID: "c", Answer: store.CommandTurn}}}
		}},
	} {
		t.Run(c.name+" is refused alone", func(t *testing.T) {
			f := newFixture(t, open)
			l, good := f.active("s1"), f.active("s2")
			w := c.make(l)
			w.Lease, w.StepCommitted, w.FinishedTurns = l, true, 1
			errs, err := f.Commit(f.ctx(), []store.Write{w, {Lease: good, FinishedTurns: 1}})
			f.must(err)
			if errs[0] == nil || errors.Is(errs[0], store.ErrStaleEpoch) || errs[1] != nil {
				t.Errorf("errors %v", errs)
			}
			if f.session(l.Key).FinishedTurns != 0 || f.session(good.Key).FinishedTurns != 1 {
				t.Error("the wrong write was written, or the right one was not")
			}
		})
	}

	t.Run("a message that is there already is refused", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		w := store.Write{Lease: l, Messages: []*sessionv1.Message{message(l.Key, "m", "", "x")}}
		f.commit(w)
		errs, err := f.Commit(f.ctx(), []store.Write{w})
		f.must(err)
		if !errors.Is(errs[0], store.ErrExists) {
			t.Errorf("got %v", errs[0])
		}
	})
}

func testMessages(t *testing.T, open func(t *testing.T) store.Store) {
	f := newFixture(t, open)
	l := f.active("s1")
	k := l.Key
	// a ─ b ─ c ─ d
	//      └─ x ─ y
	f.commit(store.Write{Lease: l, Messages: []*sessionv1.Message{
		message(k, "a", "", "1"), message(k, "b", "a", "2"), message(k, "c", "b", "3"),
	}})
	head := "y"
	f.commit(store.Write{Lease: l, Head: &head, Messages: []*sessionv1.Message{
		message(k, "x", "b", "4"), message(k, "d", "c", "5"), message(k, "y", "x", "6"),
	}})
	for _, c := range []struct {
		name, head, after string
		limit             int
		want              []string
		err               error
	}{
		{"the path to the session's head", "", "", 0, []string{"a", "b", "x", "y"}, nil},
		{"the path to another head", "d", "", 0, []string{"a", "b", "c", "d"}, nil},
		{"the path to a message within", "b", "", 0, []string{"a", "b"}, nil},
		{"a page", "", "", 3, []string{"a", "b", "x"}, nil},
		{"the next page", "", "x", 3, []string{"y"}, nil},
		{"a page in the middle", "d", "a", 2, []string{"b", "c"}, nil},
		{"what comes behind the head", "", "y", 3, nil, nil},
		{"behind a message of the other branch", "", "c", 3, nil, store.ErrNotFound},
		{"behind a message that is not there", "", "none", 3, nil, store.ErrNotFound},
		{"to a head that is not there", "none", "", 3, nil, store.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			messages, err := f.ListMessages(t.Context(), k, c.head, c.after, c.limit)
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			var want []string
			for _, id := range c.want {
				want = append(want, messageName(k, id))
			}
			if d := cmp.Diff(want, names(messages), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}

	t.Run("the head can go back, to the beginning too", func(t *testing.T) {
		for _, back := range []string{"b", ""} {
			f.commit(store.Write{Lease: l, Head: &back})
			messages, err := f.ListMessages(t.Context(), k, "", "", 0)
			if err != nil || len(messages) != map[string]int{"b": 2, "": 0}[back] {
				t.Errorf("head %q: %v, %v", back, messages, err)
			}
		}
		messages, err := f.ListMessages(t.Context(), k, "y", "", 0)
		if err != nil || len(messages) != 4 {
			t.Errorf("the branch that was left: %v, %v", messages, err)
		}
	})
}
