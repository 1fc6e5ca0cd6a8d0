package storetest

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// clean ends the job of a deletion, so that the id is free.
func (f *fixture) clean(k store.Key) {
	f.Helper()
	f.must(f.EndJob(f.ctx(), f.claimDelete(k), nil))
}

func (f *fixture) claimDelete(k store.Key) store.Job {
	f.Helper()
	jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: []store.JobKind{store.JobDelete}, Tenant: k.Tenant, ID: k.Session, TTL: time.Hour})
	f.must(err)
	if len(jobs) != 1 || jobs[0].Tenant != k.Tenant || jobs[0].ID != k.Session || jobs[0].Kind != store.JobDelete {
		f.Fatalf("claimed %v", jobs)
	}
	return jobs[0]
}

// tick waits for the clock, so that older rows have an age above 0.
func tick() {
	for begin := time.Now(); time.Since(begin) < time.Millisecond; {
		runtime.Gosched()
	}
}

func testDeleting(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("the id of a deleted session is free once its job has ended", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		for range 2 { // the second time after an earlier deletion of the id
			_, err := f.DeleteSession(f.ctx(), k, store.Request{})
			f.must(err)
			refused := func(when string) {
				t.Helper()
				if _, err := f.CreateSession(f.ctx(), newSession(k)); !errors.Is(err, store.ErrDeleting) {
					t.Errorf("%s: %v", when, err)
				}
			}
			refused("before the job")
			other := k
			other.Tenant = "other"
			if _, err := f.CreateSession(f.ctx(), newSession(other)); err != nil && !errors.Is(err, store.ErrExists) {
				t.Errorf("in another tenant: %v", err)
			}
			j := f.claimDelete(k)
			refused("while the job runs")
			f.must(f.EndJob(f.ctx(), j, &store.Job{}))
			refused("when the job is to be tried again")
			f.clean(k)
			f.create(k)
		}
	})

	t.Run("the id of a deleted session stays its user's", func(t *testing.T) {
		f := newFixture(t, open)
		anns := newSession(key("s1"))
		anns.User = "ann"
		bobs, imported := anns, history(anns.Key)
		bobs.User, imported.User = "bob", "bob"
		_, err := f.CreateSession(f.ctx(), anns)
		f.must(err)
		_, err = f.DeleteSession(f.ctx(), anns.Key, store.Request{})
		f.must(err)
		f.clean(anns.Key)
		if _, err := f.CreateSession(f.ctx(), bobs); !errors.Is(err, store.ErrExists) {
			t.Errorf("another user creates it: %v", err)
		}
		if _, err := f.ImportSession(f.ctx(), imported); !errors.Is(err, store.ErrExists) {
			t.Errorf("another user imports it: %v", err)
		}
		if err := f.HoldID(f.ctx(), bobs.Key, "bob"); !errors.Is(err, store.ErrExists) {
			t.Errorf("another user holds it: %v", err)
		}
		f.must(f.HoldID(f.ctx(), anns.Key, "ann"))
		_, err = f.CreateSession(f.ctx(), anns)
		f.must(err)
	})

	t.Run("a held id is its user's before there is a session", func(t *testing.T) {
		f := newFixture(t, open)
		anns := newSession(key("s1"))
		anns.User = "ann"
		bobs := anns
		bobs.User = "bob"
		f.must(f.HoldID(f.ctx(), anns.Key, "ann"))
		f.must(f.HoldID(f.ctx(), anns.Key, "ann"))
		if _, err := f.CreateSession(f.ctx(), bobs); !errors.Is(err, store.ErrExists) {
			t.Errorf("another user creates it: %v", err)
		}
		_, err := f.CreateSession(f.ctx(), anns)
		f.must(err)
	})

	t.Run("the job of a deletion is left to who deletes, for a moment", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		_, err := f.DeleteSession(f.ctx(), k, store.Request{})
		f.must(err)
		f.wantJobs("at once", f.claimJobs(0))
		if d := cmp.Diff(store.JobDelete, f.claimJobsUntil(time.Hour)[0].Kind); d != "" {
			t.Error(d)
		}
	})

	t.Run("a claimer of one job gets no other, and not twice", func(t *testing.T) {
		f := newFixture(t, open)
		a, other := job("a"), job("a")
		a.Due, other.Tenant = time.Now().Add(time.Hour), "other"
		f.must(f.PutJobs(f.ctx(), []store.Job{a, other, job("b")}))
		c := store.JobClaim{Kinds: []store.JobKind{store.JobWebhook}, Tenant: "acme", ID: "a", TTL: time.Hour}
		for _, want := range [][]string{{"a"}, {}} {
			got, err := f.ClaimJobs(f.ctx(), c)
			f.must(err)
			f.wantJobs("by id", got, want...)
		}
		c.Kinds, c.ID = []store.JobKind{store.JobAfterTurn}, "b"
		got, err := f.ClaimJobs(f.ctx(), c)
		f.must(err)
		f.wantJobs("of another kind", got)
	})
}

func testIdle(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("only sessions without use and without waiting work are deleted", func(t *testing.T) {
		f := hooks{newFixture(t, open)}
		f.create(key("idle"))
		f.create(store.Key{Tenant: "other", Session: "idle"})
		f.submitTurn(f.create(key("queued")), "t1")
		f.active("active")
		parked := f.active("parked")
		f.commit(wait(parked, "t1", store.PendingCall{CallID: "c", TurnID: "t1", Answer: store.CommandToolResult}))
		for _, id := range []string{"scheduled", "paused", "over"} {
			_, err := f.CreateSchedule(f.ctx(), newSchedule(f.create(key(id)), "a", time.Hour))
			f.must(err)
		}
		_, err := f.PauseSchedule(f.ctx(), store.PauseSchedule{Key: key("paused"), ID: "a", Paused: true})
		f.must(err)
		f.must(f.ScheduleFired(f.ctx(), store.ScheduleFired{Key: key("over"), ID: "a", Due: f.schedule(key("over"), "a").Due})) // no time is left
		told := f.active("told")
		f.webhook(newWebhook("acme", "hook", "sessions/told"))
		f.commit(finish(told, "t1"))
		done := f.active("done")
		f.commit(finish(done, "t1"))

		gone, err := f.DeleteIdle(f.ctx(), time.Hour, 10)
		f.must(err)
		if len(gone) != 0 {
			t.Errorf("too early: %v", gone)
		}
		tick()
		gone, err = f.DeleteIdle(f.ctx(), 0, 10)
		f.must(err)
		slices.SortFunc(gone, cmpKeys)
		if d := cmp.Diff([]store.Key{key("done"), key("idle"), key("over"), {Tenant: "other", Session: "idle"}}, gone); d != "" {
			t.Error(d)
		}
		f.wantJobs("for the peers", f.claimJobs(0, store.JobDelete), "done", "idle", "idle", "over")
		for _, id := range []string{"queued", "active", "parked", "scheduled", "paused", "told"} {
			f.session(key(id))
		}
		f.must(f.EndJob(f.ctx(), f.hookJobs(store.JobWebhook)[0], nil))
		if gone, err := f.DeleteIdle(f.ctx(), 0, 10); err != nil || !slices.Equal(gone, []store.Key{told.Key}) {
			t.Errorf("once its message has arrived: %v, %v", gone, err)
		}
		if _, err := f.GetSession(f.ctx(), key("done")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("done: %v", err)
		}
	})

	t.Run("no more go at one time than was asked for", func(t *testing.T) {
		f := newFixture(t, open)
		for range 3 {
			f.create(key(f.nextID("s")))
		}
		tick()
		for _, want := range []int{2, 1, 0} {
			gone, err := f.DeleteIdle(f.ctx(), 0, 2)
			f.must(err)
			if len(gone) != want {
				t.Errorf("%v, want %d", gone, want)
			}
		}
	})
}
