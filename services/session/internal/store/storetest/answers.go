package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func answerTo(k store.Key, kind store.CommandKind, call, digest string) store.Submit {
	return store.Submit{Key: k, Digest: digest, Command: store.Command{Kind: kind, CallID: call, Body: []byte("answer"), User: "eve"}}
}

func testAnswers(t *testing.T, open func(t *testing.T) store.Store) {
	approval := store.PendingCall{CallID: "c1", TurnID: "t1", Answer: store.CommandApproval, Digest: "d1"}
	result := store.PendingCall{CallID: "c2", TurnID: "t1", Answer: store.CommandToolResult}
	question := store.PendingCall{CallID: "c4", TurnID: "t1", Answer: store.CommandAnswer, Digest: "q1"}
	waiting := func(t *testing.T) (*fixture, store.Lease) {
		f := newFixture(t, open)
		l := f.active("s1")
		f.commit(wait(l, "t1", result, approval, question))
		return f, l
	}

	t.Run("a holder sees what waits", func(t *testing.T) {
		f, l := waiting(t)
		snap, err := f.Load(f.ctx(), l)
		f.must(err)
		if d := cmp.Diff([]store.PendingCall{approval, result, question}, snap.Pending); d != "" {
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
		{"an answer to a question", store.CommandAnswer, "c4", "q1", nil},
		{"an answer to an earlier question", store.CommandAnswer, "c4", "q0", store.ErrDigestMismatch},
		{"an approval for a call that asks something else", store.CommandApproval, "c4", "q1", store.ErrCallNotWaiting},
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
