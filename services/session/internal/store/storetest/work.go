package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// queue creates a session in the queue of an environment, with a turn that is active.
func queue(f *fixture, id, environment string) {
	f.Helper()
	s := newSession(key(id))
	s.Labels = map[string]string{store.WorkLabel: environment}
	_, err := f.CreateSession(f.ctx(), s)
	f.must(err)
	f.submitTurn(s.Key, "t-"+id)
	l := f.claim(s.Key)
	f.commit(start(l, "t-"+id, f.inbox(l)...))
	f.must(f.Release(f.ctx(), l))
}

func polls(f *fixture, environment string, reclaim time.Duration, want string, number int64) *store.Work {
	f.Helper()
	w, err := f.PollWork(f.ctx(), store.WorkPoll{WorkQueue: store.WorkQueue{Tenant: "acme", Environment: environment}, Worker: "w", Reclaim: reclaim})
	switch {
	case want == "" && errors.Is(err, store.ErrNotFound):
		return nil
	case want == "" || err != nil || w.Session != want || w.Number != number || w.State != store.WorkQueued:
		f.Fatalf("the poll of %s returns %+v and %v, want item %d of %q", environment, w, err, number, want)
	}
	return w
}

func changesWork(f *fixture, environment, session string, number int64, change func(w *store.Work, now time.Time)) {
	f.Helper()
	_, err := f.ChangeWork(f.ctx(), store.WorkQueue{Tenant: "acme", Environment: environment}, session, number, func(w *store.Work, now time.Time) error {
		change(w, now)
		return nil
	})
	f.must(err)
}

func testWorkQueues(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("an item has one worker at a time", func(t *testing.T) {
		f := newFixture(t, open)
		queue(f, "s1", "prod")
		polls(f, "other", time.Hour, "", 0)
		polls(f, "prod", time.Hour, "s1", 1)
		polls(f, "prod", time.Hour, "", 0)
		polls(f, "prod", -time.Minute, "s1", 1) // it was not acknowledged
		changesWork(f, "prod", "s1", 1, func(w *store.Work, now time.Time) {
			end := now.Add(time.Hour)
			w.State, w.HeartbeatTime, w.LeaseEnd, w.TTL = store.WorkActive, &now, &end, time.Hour
		})
		polls(f, "prod", -time.Minute, "", 0)
		changesWork(f, "prod", "s1", 1, func(w *store.Work, now time.Time) {
			if w.HeartbeatTime == nil || w.TTL != time.Hour {
				t.Errorf("the item is %+v", w)
			}
			w.LeaseEnd = &now
		})
		if w := polls(f, "prod", time.Hour, "s1", 1); w.HeartbeatTime != nil || w.LeaseEnd != nil {
			t.Errorf("the item of a dead worker is %+v", w)
		}
		changesWork(f, "prod", "s1", 1, func(w *store.Work, now time.Time) { w.State, w.StopTime = store.WorkStopped, &now })
		polls(f, "prod", time.Hour, "s1", 2) // its turn is still active
		if _, err := f.GetWork(f.ctx(), store.WorkQueue{Tenant: "acme", Environment: "prod"}, "s1", 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the item before: %v", err)
		}
	})
	t.Run("a queue has the sessions of its tenant, environment and user", func(t *testing.T) {
		f := newFixture(t, open)
		queue(f, "s1", "prod")
		queue(f, "s2", "prod")
		queue(f, "s3", "test")
		for _, c := range []struct {
			queue store.WorkQueue
			want  int
		}{
			{store.WorkQueue{Tenant: "acme", Environment: "prod"}, 2}, {store.WorkQueue{Tenant: "globex", Environment: "prod"}, 0},
			{store.WorkQueue{Tenant: "acme", Environment: "prod", User: "nobody"}, 0},
		} {
			all, err := f.ListWork(f.ctx(), c.queue, "", 0)
			f.must(err)
			n, err := f.CountWork(f.ctx(), c.queue)
			f.must(err)
			if len(all) != c.want || n.Depth != c.want || n.Pending != 0 || (n.Oldest != nil) != (c.want > 0) {
				t.Errorf("%+v has %d items and counts %+v, want %d", c.queue, len(all), n, c.want)
			}
		}
		polls(f, "prod", time.Hour, "s1", 1)
		n, err := f.CountWork(f.ctx(), store.WorkQueue{Tenant: "acme", Environment: "prod"})
		f.must(err)
		if n.Depth != 1 || n.Pending != 1 {
			t.Errorf("after a poll it counts %+v", n)
		}
		failed := errors.New("refused")
		if _, err := f.ChangeWork(f.ctx(), store.WorkQueue{Tenant: "acme", Environment: "prod"}, "s1", 1, func(w *store.Work, _ time.Time) error {
			w.State = store.WorkStopped
			return failed
		}); !errors.Is(err, failed) {
			t.Errorf("a refused change: %v", err)
		}
		if w, err := f.GetWork(f.ctx(), store.WorkQueue{Tenant: "acme", Environment: "prod"}, "s1", 1); err != nil || w.State != store.WorkQueued {
			t.Errorf("after a refused change: %+v %v", w, err)
		}
	})
}
