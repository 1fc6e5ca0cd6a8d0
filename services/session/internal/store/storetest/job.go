package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func job(id string) store.Job {
	return store.Job{Tenant: "acme", Kind: store.JobWebhook, ID: id, Body: []byte("body of " + id)}
}

// claimJobs claims for an hour.
func (f *fixture) claimJobs(limit int, kinds ...store.JobKind) []store.Job {
	f.Helper()
	jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: kinds, Limit: limit, TTL: time.Hour})
	f.must(err)
	return jobs
}

// claimJobsUntil claims again and again until it gets something.
func (f *fixture) claimJobsUntil(ttl time.Duration) []store.Job {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), 20*time.Second)
	defer cancel()
	for {
		jobs, err := f.ClaimJobs(ctx, store.JobClaim{TTL: ttl})
		f.must(err)
		if len(jobs) > 0 {
			return jobs
		}
	}
}

func jobIDs(jobs []store.Job) []string {
	ids := make([]string, 0, len(jobs))
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	slices.Sort(ids)
	return ids
}

func (f *fixture) wantJobs(what string, got []store.Job, want ...string) {
	f.Helper()
	if d := cmp.Diff(append([]string{}, want...), jobIDs(got)); d != "" {
		f.Errorf("%s: %s", what, d)
	}
}

func testJobs(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a request puts its jobs once, also when they have ended", func(t *testing.T) {
		f := newFixture(t, open)
		asked := []store.Job{job("a"), job("b")}
		a, err := f.RequestJobs(f.ctx(), "acme", asked, request("r"))
		f.must(err)
		if a.Replayed {
			t.Error("the first request is a repetition")
		}
		claimed := f.claimJobs(0, store.JobWebhook)
		f.wantJobs("claimed", claimed, "a", "b")
		for _, j := range claimed {
			f.must(f.EndJob(f.ctx(), j, nil))
		}
		if a, err = f.RequestJobs(f.ctx(), "acme", asked, request("r")); err != nil || !a.Replayed {
			t.Errorf("the repetition: %+v, %v", a, err)
		}
		f.wantJobs("after the repetition", f.claimJobs(0))
		other := request("r")
		other.Digest = []byte("another")
		if _, err := f.RequestJobs(f.ctx(), "acme", asked, other); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("another request under the same id: %v", err)
		}
		_, err = f.RequestJobs(f.ctx(), "acme", asked, request("s"))
		f.must(err)
		f.wantJobs("after another request", f.claimJobs(0), "a", "b")
	})

	t.Run("a job is claimed as it was put", func(t *testing.T) {
		f := newFixture(t, open)
		want := job("a")
		want.Session, want.Due = "s1", time.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond)
		f.must(f.PutJobs(f.ctx(), []store.Job{want}))
		got := f.claimJobs(1)
		want.Attempt = 1
		if len(got) != 1 || got[0].Claim == "" {
			t.Fatalf("claimed %v", got)
		}
		want.Claim = got[0].Claim
		if d := cmp.Diff(want, got[0]); d != "" {
			t.Error(d)
		}
		f.wantJobs("claimed already", f.claimJobs(0))
	})

	t.Run("a job without a time is due at once, and one that is due later is not claimed", func(t *testing.T) {
		f := newFixture(t, open)
		later := job("later")
		later.Due = time.Now().Add(time.Hour)
		f.must(f.PutJobs(f.ctx(), []store.Job{later, job("now")}))
		f.must(f.PutJobs(f.ctx(), nil))
		f.wantJobs("claimed", f.claimJobs(0), "now")
	})

	t.Run("putting a job that is there changes nothing", func(t *testing.T) {
		f := newFixture(t, open)
		again := job("a")
		again.Body, again.Due = []byte("other"), time.Now().Add(time.Hour)
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a"), again}))
		f.must(f.PutJobs(f.ctx(), []store.Job{again}))
		got := f.claimJobs(0)
		if len(got) != 1 || string(got[0].Body) != "body of a" {
			t.Fatalf("claimed %v", got)
		}
		f.must(f.PutJobs(f.ctx(), []store.Job{again}))
		f.must(f.EndJob(f.ctx(), got[0], nil))
	})

	t.Run("of the same name in another tenant or of another kind it is another job", func(t *testing.T) {
		f := newFixture(t, open)
		other, tend := job("a"), job("a")
		other.Tenant, tend.Kind = "other", store.JobAfterTurn
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a"), other, tend}))
		f.wantJobs("of one kind", f.claimJobs(0, store.JobAfterTurn), "a")
		f.wantJobs("of kinds that are not there", f.claimJobs(0, store.JobDelete, store.JobRetain))
		f.wantJobs("of several", f.claimJobs(0, store.JobDelete, store.JobWebhook), "a", "a")
	})

	t.Run("a job that was ended is gone, and may be put again", func(t *testing.T) {
		f := newFixture(t, open)
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a")}))
		first := f.claimJobs(1)[0]
		f.must(f.EndJob(f.ctx(), first, nil))
		if err := f.EndJob(f.ctx(), first, nil); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("ended twice: %v", err)
		}
		f.wantJobs("after the end", f.claimJobs(0))
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a")}))
		second := f.claimJobs(1)
		f.wantJobs("put again", second, "a")
		if err := f.EndJob(f.ctx(), first, nil); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("the old claim ends the new job: %v", err)
		}
		f.must(f.EndJob(f.ctx(), second[0], nil))
	})

	t.Run("a job that is given back has what it was given back with", func(t *testing.T) {
		f := newFixture(t, open)
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a")}))
		first := f.claimJobs(1)[0]
		f.must(f.EndJob(f.ctx(), first, &store.Job{Body: []byte("next"), Attempt: 4}))
		second := f.claimJobs(1)
		if len(second) != 1 || string(second[0].Body) != "next" || second[0].Attempt != 5 || second[0].Claim == first.Claim {
			t.Fatalf("claimed %v", second)
		}
		f.must(f.EndJob(f.ctx(), second[0], &store.Job{Due: time.Now().Add(time.Hour)}))
		f.wantJobs("due later", f.claimJobs(0))
		if err := f.EndJob(f.ctx(), second[0], nil); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("ended after it was given back: %v", err)
		}
	})

	t.Run("a job that is put or given back for later is due so long after the database's time", func(t *testing.T) {
		f := newFixture(t, open)
		later := job("a")
		later.After = time.Hour
		f.must(f.PutJobs(f.ctx(), []store.Job{later}))
		f.wantJobs("at once", f.claimJobs(0))
		ahead := store.JobClaim{Kinds: []store.JobKind{later.Kind}, Tenant: later.Tenant, ID: "a", Limit: 1, TTL: time.Minute}
		for _, after := range []time.Duration{2 * time.Hour, 3 * time.Hour, 0} {
			got, err := f.ClaimJobs(f.ctx(), ahead)
			f.must(err)
			f.wantJobs("ahead of time", got, "a")
			if wait := time.Until(got[0].Due); wait < later.After-time.Minute || wait > later.After+time.Minute {
				t.Errorf("due in %v, want about %v", wait, later.After)
			}
			later.After = after
			f.must(f.EndJob(f.ctx(), got[0], &store.Job{After: after}))
		}
		f.wantJobs("at last", f.claimJobs(0), "a")
	})

	t.Run("jobs go with their session", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		mine, other, none := job("mine"), job("other"), job("none")
		mine.Session, other.Session = k.Session, "s2"
		f.must(f.PutJobs(f.ctx(), []store.Job{mine, other, none}))
		held := f.claimJobs(0)
		_, err := f.DeleteSession(f.ctx(), k, store.Request{})
		f.must(err)
		for _, j := range held {
			err := f.EndJob(f.ctx(), j, &store.Job{})
			if gone := errors.Is(err, store.ErrStaleEpoch); gone != (j.ID == "mine") || !gone && err != nil {
				t.Errorf("job %s: %v", j.ID, err)
			}
		}
	})
}

func testJobClaims(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a claim that has lapsed is taken over, and then ends nothing", func(t *testing.T) {
		f := newFixture(t, open)
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a")}))
		first := f.claimJobsUntil(time.Millisecond)[0]
		second := f.claimJobsUntil(time.Hour)[0]
		if second.Attempt != 2 || !second.Due.Equal(first.Due) {
			t.Errorf("taken over as %+v of %+v", second, first)
		}
		for _, again := range []*store.Job{nil, {}} {
			if err := f.EndJob(f.ctx(), first, again); !errors.Is(err, store.ErrStaleEpoch) {
				t.Errorf("the first claimer ends it: %v", err)
			}
		}
		f.must(f.EndJob(f.ctx(), second, nil))
	})

	t.Run("a claim that has lapsed but was not taken over is good", func(t *testing.T) {
		f := newFixture(t, open)
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a")}))
		j := f.claimJobsUntil(time.Microsecond)[0]
		f.must(f.EndJob(f.ctx(), j, nil))
	})

	t.Run("no tenant waits behind all jobs of another", func(t *testing.T) {
		f := newFixture(t, open)
		at := time.Now().Add(-time.Hour)
		var jobs []store.Job
		for tenant, n := range map[string]int{"big": 10, "small": 2, "tiny": 1} {
			for i := range n {
				j := job(tenant + string(rune('a'+i)))
				j.Tenant, j.Due = tenant, at.Add(time.Duration(i)*time.Second+map[string]time.Duration{"big": 0, "small": time.Minute, "tiny": 2 * time.Minute}[tenant])
				jobs = append(jobs, j)
			}
		}
		f.must(f.PutJobs(f.ctx(), jobs))
		f.wantJobs("first", f.claimJobs(2), "biga", "smalla")
		f.wantJobs("then", f.claimJobs(3), "bigb", "smallb", "tinya")
		f.wantJobs("the rest", f.claimJobs(3), "bigc", "bigd", "bige")
	})

	t.Run("claimers at the same time never get the same job, and each job ends once", func(t *testing.T) {
		f := newFixture(t, open)
		const n = 60
		var jobs []store.Job
		for range n {
			jobs = append(jobs, job(f.nextID("j")))
		}
		f.must(f.PutJobs(f.ctx(), jobs))
		var mu sync.Mutex
		ended, failed := map[string]int{}, map[string]int{}
		var claimers sync.WaitGroup
		for range 4 {
			claimers.Go(func() {
				for {
					got, err := f.ClaimJobs(f.ctx(), store.JobClaim{Limit: 3, TTL: time.Hour})
					if err != nil || len(got) == 0 {
						if err != nil {
							t.Error(err)
						}
						return
					}
					for _, j := range got {
						err := f.EndJob(f.ctx(), j, nil)
						mu.Lock()
						if ended[j.ID]++; err != nil {
							failed[j.ID]++
						}
						mu.Unlock()
					}
				}
			})
		}
		claimers.Wait()
		// The concurrent claimers have ended, so the remaining jobs are free
		// now.
		for _, j := range f.claimJobs(0) {
			f.must(f.EndJob(f.ctx(), j, nil))
			ended[j.ID]++
		}
		if len(ended) != n || len(failed) > 0 {
			t.Errorf("%d ended, failed %v", len(ended), failed)
		}
		for id, times := range ended {
			if times != 1 {
				t.Errorf("%s was claimed %d times", id, times)
			}
		}
	})

	t.Run("of claimers whose claims lapse only one ends the job", func(t *testing.T) {
		f := newFixture(t, open)
		f.must(f.PutJobs(f.ctx(), []store.Job{job("a")}))
		var claims []store.Job
		for range 5 {
			claims = append(claims, f.claimJobsUntil(time.Microsecond)[0])
		}
		ok := make(chan int, len(claims))
		var enders sync.WaitGroup
		for i, j := range claims {
			enders.Go(func() {
				switch err := f.EndJob(f.ctx(), j, nil); {
				case err == nil:
					ok <- i
				case !errors.Is(err, store.ErrStaleEpoch):
					t.Error(err)
				}
			})
		}
		enders.Wait()
		close(ok)
		var won []int
		for i := range ok {
			won = append(won, i)
		}
		if d := cmp.Diff([]int{len(claims) - 1}, won); d != "" {
			t.Error(d)
		}
	})
}

func testCommittedJobs(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a commit puts its jobs, of the session's tenant", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		wakes, err := f.Listen(f.ctx())
		f.must(err)
		j := job("a")
		j.Tenant = ""
		f.commit(store.Write{Lease: l, Jobs: []store.Job{j, j}})
		got := f.claimJobs(0)
		if len(got) != 1 || got[0].Tenant != "acme" {
			t.Errorf("claimed %v", got)
		}
		f.awaitWake(wakes, store.Wake{Kind: store.WakeJobs})
	})

	t.Run("a write that is refused puts none", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		w := finish(l, "t1")
		w.Epoch--
		w.Jobs = []store.Job{job("a")}
		errs, err := f.Commit(f.ctx(), []store.Write{w})
		f.must(err)
		if !errors.Is(errs[0], store.ErrStaleEpoch) {
			t.Fatal(errs)
		}
		f.wantJobs("claimed", f.claimJobs(0))
	})

	for state := range sessionv1.TurnState_name {
		state := sessionv1.TurnState(state)
		want := []string{}
		if state > sessionv1.TurnState_TURN_STATE_WAITING {
			want = append(want, "s1/t1")
		}
		t.Run("what a turn that is "+strings.TrimPrefix(state.String(), "TURN_STATE_")+" puts", func(t *testing.T) {
			f := newFixture(t, open)
			l := f.active("s1")
			f.commit(store.Write{Lease: l, Turns: []*store.TurnRow{turnIn(l.Key, "t1", state)}})
			f.wantJobs("tends", f.claimJobs(0, store.JobAfterTurn), want...)
		})
	}
}
