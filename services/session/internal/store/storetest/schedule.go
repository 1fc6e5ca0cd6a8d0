package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func newSchedule(k store.Key, id string, in time.Duration) store.NewSchedule {
	return store.NewSchedule{
		Key: k, ID: id, User: "ada", Next: inFrom(in),
		Schedule: &sessionv1.Schedule{Cron: "@daily", TimeZone: "Europe/Berlin", Text: "look", OnActive: sessionv1.OnActive_ON_ACTIVE_REJECT},
	}
}

func inFrom(in time.Duration) func(time.Time) time.Time {
	return func(now time.Time) time.Time { return now.Add(in).Truncate(time.Second) }
}

func (f *fixture) schedule(k store.Key, id string) *store.ScheduleRow {
	f.Helper()
	row, err := f.GetSchedule(f.ctx(), k, id)
	f.must(err)
	return row
}

// hookJobs claims all due jobs of a kind.
func (f *fixture) hookJobs(kind store.JobKind) []store.Job {
	f.Helper()
	jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: []store.JobKind{kind}, Limit: 100, TTL: time.Minute})
	f.must(err)
	return jobs
}

func testSchedules(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a schedule is a row and a job", func(t *testing.T) { testScheduleJob(newFixture(t, open)) })
	t.Run("what fired is noted once", func(t *testing.T) { testScheduleFired(newFixture(t, open)) })
	t.Run("a pause takes the job, and the end of it makes another", func(t *testing.T) { testSchedulePause(newFixture(t, open)) })

	t.Run("schedules are listed by id and bounded", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s"))
		for _, id := range []string{"c", "a", "b"} {
			_, err := f.CreateSchedule(f.ctx(), newSchedule(k, id, time.Hour))
			f.must(err)
		}
		got, err := f.ListSchedules(f.ctx(), k, "a", 1)
		if err != nil || len(got) != 1 || got[0].Name != "sessions/s/schedules/b" {
			t.Errorf("list: %v, %v", got, err)
		}
		for range store.MaxSchedules - 3 {
			_, err := f.CreateSchedule(f.ctx(), newSchedule(k, f.nextID("x"), time.Hour))
			f.must(err)
		}
		if _, err := f.CreateSchedule(f.ctx(), newSchedule(k, "one-more", time.Hour)); !errors.Is(err, store.ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
		if _, err := f.GetSchedule(f.ctx(), k, "one-more"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is there: %v", err)
		}
	})

	t.Run("a schedule goes with its session, and is its tenant's", func(t *testing.T) {
		f := newFixture(t, open)
		k, other := f.create(key("s")), f.create(store.Key{Tenant: "other", Session: "s"})
		for _, k := range []store.Key{k, other} {
			_, err := f.CreateSchedule(f.ctx(), newSchedule(k, "a", -time.Hour))
			f.must(err)
		}
		_, err := f.DeleteSession(f.ctx(), k, store.Request{})
		f.must(err)
		if _, err := f.GetSchedule(f.ctx(), k, "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get: %v", err)
		}
		if _, err := f.ListSchedules(f.ctx(), k, "", 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("list: %v", err)
		}
		if jobs := f.hookJobs(store.JobSchedule); len(jobs) != 1 || jobs[0].Tenant != "other" {
			t.Errorf("jobs %v", jobs)
		}
	})
}

func testScheduleJob(f *fixture) {
	k := f.create(key("s"))
	n := newSchedule(k, "a", -time.Hour)
	n.Request = request("r")
	if a, err := f.CreateSchedule(f.ctx(), n); err != nil || a != (store.Answer{Value: "a"}) {
		f.Fatal(a, err)
	}
	n.ID = "b" // as by a server that assigns the ids
	if a, err := f.CreateSchedule(f.ctx(), n); err != nil || a != (store.Answer{Value: "a", Replayed: true}) {
		f.Error(a, err)
	}
	n.ID, n.Request = "a", request("r2")
	if _, err := f.CreateSchedule(f.ctx(), n); !errors.Is(err, store.ErrExists) {
		f.Errorf("again: %v", err)
	}
	if _, err := f.CreateSchedule(f.ctx(), newSchedule(key("none"), "a", 0)); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("without a session: %v", err)
	}
	row := f.schedule(k, "a")
	want := &sessionv1.Schedule{
		Name: "sessions/s/schedules/a", Cron: "@daily", TimeZone: "Europe/Berlin", Text: "look", OnActive: sessionv1.OnActive_ON_ACTIVE_REJECT,
		CreateTime: row.Schedule.CreateTime, NextTime: row.Schedule.NextTime,
	}
	if d := cmp.Diff(want, row.Schedule, protocmp.Transform()); d != "" {
		f.Error(d)
	}
	if late := row.Now.Sub(row.Due); row.User != "ada" || late < time.Hour || late > time.Hour+time.Minute {
		f.Errorf("row %+v", row)
	}
	jobs := f.hookJobs(store.JobSchedule)
	if len(jobs) != 1 || !jobs[0].Due.Equal(row.Due) || jobs[0].Session != "s" {
		f.Fatalf("jobs %+v", jobs)
	}
	if owner, id := store.ScheduleOf(jobs[0]); owner != k || id != "a" {
		f.Errorf("the job is of %v %s", owner, id)
	}
	_, err := f.DeleteSchedule(f.ctx(), k, "a", request("d"))
	f.must(err)
	if a, err := f.DeleteSchedule(f.ctx(), k, "a", request("d")); err != nil || !a.Replayed {
		f.Error(a, err)
	}
	if _, err := f.DeleteSchedule(f.ctx(), k, "a", store.Request{}); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("delete: %v", err)
	}
	if err := f.EndJob(f.ctx(), jobs[0], &store.Job{}); !errors.Is(err, store.ErrStaleEpoch) {
		f.Errorf("the job is there: %v", err)
	}
}

func testScheduleFired(f *fixture) {
	k := f.create(key("s"))
	_, err := f.CreateSchedule(f.ctx(), newSchedule(k, "a", -time.Hour))
	f.must(err)
	due := f.schedule(k, "a").Due
	next := due.Add(2 * time.Hour)
	f.must(f.ScheduleFired(f.ctx(), store.ScheduleFired{Key: k, ID: "a", Due: due, Next: next, Turn: "sessions/s/turns/t1"}))
	f.must(f.ScheduleFired(f.ctx(), store.ScheduleFired{Key: k, ID: "a", Due: due, Next: next.Add(time.Hour), Turn: "sessions/s/turns/t2"}))
	if row := f.schedule(k, "a"); !row.Due.Equal(next) || row.Schedule.LastTurn != "sessions/s/turns/t1" || row.Schedule.LastError != "" {
		f.Errorf("row %+v", row)
	}
	for text, want := range strangeTexts() {
		after := next.Add(time.Hour)
		f.must(f.ScheduleFired(f.ctx(), store.ScheduleFired{Key: k, ID: "a", Due: next, Next: after, Error: text}))
		if row := f.schedule(k, "a"); row.Schedule.LastError != want {
			f.Errorf("the error %q is %q", text, row.Schedule.LastError)
		}
		next = after
	}
	f.must(f.ScheduleFired(f.ctx(), store.ScheduleFired{Key: k, ID: "a", Due: next, Error: "left\nout"}))
	if row := f.schedule(k, "a"); !row.Due.IsZero() || row.Schedule.NextTime != nil || row.Schedule.LastTurn != "sessions/s/turns/t1" || row.Schedule.LastError != "left out" {
		f.Errorf("row %+v", row)
	}
}

func testSchedulePause(f *fixture) {
	k := f.create(key("s"))
	_, err := f.CreateSchedule(f.ctx(), newSchedule(k, "a", -time.Hour))
	f.must(err)
	p := store.PauseSchedule{Key: k, ID: "a", Paused: true, Next: inFrom(-time.Minute), Request: request("p")}
	_, err = f.PauseSchedule(f.ctx(), p)
	f.must(err)
	if row := f.schedule(k, "a"); !row.Schedule.Paused || !row.Due.IsZero() {
		f.Errorf("row %+v", row)
	}
	if jobs := f.hookJobs(store.JobSchedule); len(jobs) > 0 {
		f.Errorf("jobs %v", jobs)
	}
	p.Paused, p.Request = false, request("go on")
	_, err = f.PauseSchedule(f.ctx(), p)
	f.must(err)
	if a, err := f.PauseSchedule(f.ctx(), p); err != nil || !a.Replayed {
		f.Error(a, err)
	}
	row := f.schedule(k, "a")
	if row.Schedule.Paused || row.Due.IsZero() {
		f.Errorf("row %+v", row)
	}
	if jobs := f.hookJobs(store.JobSchedule); len(jobs) != 1 || !jobs[0].Due.Equal(row.Due) {
		f.Errorf("jobs %v", jobs)
	}
	p.ID, p.Request = "none", store.Request{}
	if _, err := f.PauseSchedule(f.ctx(), p); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("pause: %v", err)
	}
}
