package storetest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

func answerTo(k store.Key, kind store.CommandKind, call, digest string) store.Submit {
	return store.Submit{Key: k, Digest: digest, Command: store.Command{Kind: kind, CallID: call, Body: []byte("answer"), User: "eve"}}
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

func testAnswers(t *testing.T, open func(t *testing.T) store.Store) {
	approval := store.PendingCall{CallID: "c1", TurnID: "t1", Answer: store.CommandApproval, Digest: "d1"}
	result := store.PendingCall{CallID: "c2", TurnID: "t1", Answer: store.CommandToolResult}
	waiting := func(t *testing.T) (*fixture, store.Lease) {
		f := newFixture(t, open)
		l := f.active("s1")
		f.commit(wait(l, "t1", result, approval))
		return f, l
	}

	t.Run("a holder sees what waits", func(t *testing.T) {
		f, l := waiting(t)
		snap, err := f.Load(f.ctx(), l)
		f.must(err)
		if d := cmp.Diff([]store.PendingCall{approval, result}, snap.Pending); d != "" {
			t.Error(d)
		}
	})

	for _, c := range []struct {
		name string
		kind store.CommandKind
		call string
		dig  string
		want error
	}{
		{"an approval", store.CommandApproval, "c1", "d1", nil},
		{"a result", store.CommandToolResult, "c2", "", nil},
		{"an approval of other arguments", store.CommandApproval, "c1", "d2", store.ErrDigestMismatch},
		{"an approval for a call that waits for a result", store.CommandApproval, "c2", "", store.ErrCallNotWaiting},
		{"a result for a call that waits for an approval", store.CommandToolResult, "c1", "", store.ErrCallNotWaiting},
		{"an answer to no call", store.CommandApproval, "c3", "d1", store.ErrCallNotWaiting},
		{"an answer without a call", store.CommandToolResult, "", "", store.ErrCallNotWaiting},
	} {
		t.Run(c.name+" is taken or refused", func(t *testing.T) {
			f, l := waiting(t)
			_, err := f.Submit(f.ctx(), answerTo(l.Key, c.kind, c.call, c.dig))
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			var want []store.Command
			if c.want == nil {
				want = []store.Command{{ID: 2, Kind: c.kind, TurnID: "t1", CallID: c.call, Body: []byte("answer"), User: "eve"}}
			}
			if d := cmp.Diff(want, f.inbox(l), cmpopts.IgnoreFields(store.Command{}, "Time")); d != "" {
				t.Error(d)
			}
		})
	}

	t.Run("of many answers at once one is taken", func(t *testing.T) {
		f, l := waiting(t)
		var taken atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d1"))
				switch {
				case err == nil:
					taken.Add(1)
				case !errors.Is(err, store.ErrCallNotWaiting):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if taken.Load() != 1 || len(f.inbox(l)) != 1 {
			t.Errorf("%d were taken, %d are in the inbox", taken.Load(), len(f.inbox(l)))
		}
	})

	t.Run("a second answer learns of the first as long as that is in the inbox", func(t *testing.T) {
		f, l := waiting(t)
		_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d1"))
		f.must(err)
		_, err = f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d2"))
		var before *store.AnsweredError
		if !errors.As(err, &before) || string(before.Command.Body) != "answer" || before.Command.Time.IsZero() || !errors.Is(err, store.ErrCallNotWaiting) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("the time for an answer ends once, and not after an answer", func(t *testing.T) {
		f, l := waiting(t)
		_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d1"))
		f.must(err)
		for _, call := range []string{"c1", "c2", "c2", "c3"} {
			_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandExpire, call, ""))
			f.must(err)
		}
		if got := f.inbox(l); len(got) != 2 || got[1].Kind != store.CommandExpire || got[1].CallID != "c2" || got[1].TurnID != "t1" {
			t.Errorf("the inbox is %v", got)
		}
		if _, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandToolResult, "c2", "")); !errors.Is(err, store.ErrCallNotWaiting) {
			t.Errorf("a result after the time: %v", err)
		}
	})

	t.Run("a call that waits no more needs no end of its time", func(t *testing.T) {
		f, l := waiting(t)
		for _, c := range []store.PendingCall{approval, result} {
			f.must(f.PutJobs(f.ctx(), []store.Job{{Tenant: l.Tenant, Kind: store.JobExpire, ID: store.ExpiryID(l.Session, c.CallID), Session: l.Session}}))
		}
		w := wait(l, "t1")
		w.Waited = []string{"c1"}
		f.commit(w)
		jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: []store.JobKind{store.JobExpire}, Limit: 10, TTL: time.Hour})
		f.must(err)
		if len(jobs) != 1 || jobs[0].ID != store.ExpiryID(l.Session, "c2") {
			t.Errorf("the jobs are %v", jobs)
		}
	})

	t.Run("a call that waits again for the same keeps its answer, for another not", func(t *testing.T) {
		f, l := waiting(t)
		_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d1"))
		f.must(err)
		f.commit(wait(l, "t1", approval))
		if _, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d1")); !errors.Is(err, store.ErrCallNotWaiting) {
			t.Errorf("a second answer: %v", err)
		}
		other := approval
		other.Digest = "d2"
		f.commit(wait(l, "t1", other))
		_, err = f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d2"))
		f.must(err)
	})

	t.Run("an allowed call may wait for its result in the same write", func(t *testing.T) {
		f, l := waiting(t)
		w := wait(l, "t1", store.PendingCall{CallID: "c1", TurnID: "t1", Answer: store.CommandToolResult})
		w.Waited = []string{"c1", "c2"}
		f.commit(w)
		if _, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandApproval, "c1", "d1")); !errors.Is(err, store.ErrCallNotWaiting) {
			t.Errorf("approval: %v", err)
		}
		_, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandToolResult, "c1", ""))
		f.must(err)
		if _, err := f.Submit(f.ctx(), answerTo(l.Key, store.CommandToolResult, "c2", "")); !errors.Is(err, store.ErrCallNotWaiting) {
			t.Errorf("a call that waits no more: %v", err)
		}
	})
}

// claimsNothing checks that a session cannot be claimed.
func (f *fixture) claimsNothing(keys ...store.Key) {
	f.Helper()
	leases, err := f.Claim(f.ctx(), store.Claim{Replica: "other", TTL: time.Hour, Only: keys})
	f.must(err)
	if len(leases) > 0 {
		f.Errorf("claimed %v", leases)
	}
}
