package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testRestart(t *testing.T, open func(t *testing.T) (_ store.Store, reopen func() store.Store)) {
	t.Helper()
	s, reopen := open(t)
	f := &fixture{T: t, Store: s}
	k := key("s1")
	n := newSession(k)
	n.Title, n.Labels, n.Request = "title", map[string]string{"a": "b", "c": "d"}, request("create")
	_, err := f.CreateSession(f.ctx(), n)
	f.must(err)
	f.must(f.PutAgentRevision(f.ctx(), k.Tenant, store.AgentRevision{Name: "agents/coder", Revision: "r1", Spec: []byte("spec")}))
	f.submitTurn(k, "t")
	l := f.claim(k)
	w := start(l, "t", f.inbox(l)...)
	head := "m2"
	w.LastSeq, w.Events = 1, []*sessionv1.Event{delta(2, 5, "two"), delta(6, 6, "three")}
	w.Messages, w.Head = []*sessionv1.Message{message(k, "m1", "", "one"), message(k, "m2", "m1", "two")}, &head
	w.Wait = []store.PendingCall{{CallID: "c", TurnID: "t", Answer: store.CommandApproval, Digest: "d"}}
	f.commit(w)
	f.submitTurn(k, "t2")
	before := f.view(k, l)

	f.Store = reopen()
	if d := cmp.Diff(before, f.view(k, l)); d != "" {
		t.Error(d)
	}
	a, err := f.CreateSession(f.ctx(), n)
	f.must(err)
	if !a.Replayed {
		t.Error("the request was forgotten")
	}
	f.commit(store.Write{Lease: l, LastSeq: 6, Events: []*sessionv1.Event{delta(7, 7, "the lease is as good as before")}})
}

// testConcurrency has many holders, clients and renewals work on many sessions
// at once. Afterwards nothing may be lost or done twice.
func testConcurrency(t *testing.T, open func(t *testing.T) store.Store) {
	f := newFixture(t, open)
	const sessions, turns, holders = 12, 5, 3
	var keys []store.Key
	for range sessions {
		keys = append(keys, f.create(key(f.nextID("s"))))
	}
	ctx, cancel := context.WithTimeout(f.ctx(), time.Minute)
	defer cancel()
	var wg, clients sync.WaitGroup
	for _, k := range keys {
		clients.Go(func() {
			for i := range turns {
				if _, err := f.Submit(ctx, newTurn(k, fmt.Sprintf("t%d", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	submitted := make(chan struct{})
	go func() { clients.Wait(); close(submitted) }()
	for range holders {
		wg.Go(func() {
			for last := false; ; {
				leases, err := f.Claim(ctx, store.Claim{TTL: time.Minute, Limit: 4})
				if err != nil {
					t.Error(err)
					return
				}
				if err := f.work(ctx, leases); err != nil {
					t.Error(err)
					return
				}
				if len(leases) == 0 && last {
					return
				}
				select {
				case <-submitted:
					last = len(leases) == 0
				default:
				}
			}
		})
	}
	wg.Wait()
	<-submitted
	if err := f.work(ctx, f.claimRemaining()); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		f.checkWorked(k, turns)
	}
}

// work does all pending work of the sessions, one event for each command, in
// commits of all of them.
func (f *fixture) work(ctx context.Context, leases []store.Lease) error {
	for len(leases) > 0 {
		if lost, err := f.Renew(ctx, leases, time.Minute); err != nil || len(lost) > 0 {
			return errors.Join(err, errIf(len(lost) > 0, "a lease was lost"))
		}
		var writes []store.Write
		for i := len(leases) - 1; i >= 0; i-- { // in another order than other commits
			l := leases[i]
			snap, err := f.Load(ctx, l)
			if err != nil {
				return err
			}
			last := snap.Session.LastSeq
			w := store.Write{Lease: l, LastSeq: last}
			for _, c := range snap.Commands {
				last++
				e := delta(last, last, c.TurnID)
				w.Events, w.Consume = append(w.Events, e), append(w.Consume, c.ID)
				w.Turns = append(w.Turns, turnIn(l.Key, c.TurnID, sessionv1.TurnState_TURN_STATE_COMPLETE))
				w.FinishedTurns++
			}
			writes = append(writes, w)
		}
		errs, err := f.Commit(ctx, writes)
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
		var busy []store.Lease
		for _, l := range leases {
			idle, err := f.ReleaseIdle(ctx, l)
			if err != nil {
				return err
			}
			if !idle {
				busy = append(busy, l)
			}
		}
		leases = busy
	}
	return nil
}

func errIf(failed bool, text string) error {
	if failed {
		return errors.New(text)
	}
	return nil
}

// checkWorked checks that every turn was done once and in order.
func (f *fixture) checkWorked(k store.Key, turns int) {
	f.Helper()
	s := f.session(k)
	if int(s.FinishedTurns) != turns || s.LastSeq != int64(turns+1) {
		f.Errorf("%s: %d turns ended, the log ends at %d", k.Session, s.FinishedTurns, s.LastSeq)
	}
	all, err := f.ListTurns(f.ctx(), k, "", 0)
	f.must(err)
	events, err := f.ListEvents(f.ctx(), k, 1, 0, 0)
	f.must(err)
	if len(all) != len(events) {
		f.Fatalf("%s: %d turns and %d events", k.Session, len(all), len(events))
	}
	for i, e := range events {
		if want := turnName(k, e.GetTextDelta().GetText()); all[i].Name != want {
			f.Errorf("%s: turn %d is %s, its event is of %s", k.Session, i, all[i].Name, want)
		}
	}
}
