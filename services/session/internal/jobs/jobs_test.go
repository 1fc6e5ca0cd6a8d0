package jobs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// rows is a store of jobs whose clock is the bubble's.
type rows struct {
	mu     sync.Mutex
	jobs   []store.Job
	leased map[string]time.Time
	claims int
	down   bool
}

func (s *rows) ClaimJobs(_ context.Context, c store.JobClaim) ([]store.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims++; s.down {
		return nil, store.ErrUnavailable
	}
	var out []store.Job
	for i := range s.jobs {
		j := &s.jobs[i]
		if len(out) == c.Limit || j.Due.After(time.Now()) || s.leased[j.ID].After(time.Now()) || len(c.Kinds) > 0 && !slices.Contains(c.Kinds, j.Kind) {
			continue
		}
		j.Attempt++
		s.leased[j.ID] = time.Now().Add(c.TTL)
		out = append(out, *j)
	}
	return out, nil
}

func (s *rows) EndJob(ctx context.Context, j store.Job, again *store.Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil || s.down {
		return store.ErrUnavailable
	}
	i := slices.IndexFunc(s.jobs, func(o store.Job) bool { return o.ID == j.ID })
	if s.jobs[i].Attempt != j.Attempt {
		return store.ErrStaleEpoch
	}
	delete(s.leased, j.ID)
	if again == nil {
		s.jobs = slices.Delete(s.jobs, i, i+1)
		return nil
	}
	s.jobs[i].Due, s.jobs[i].Body, s.jobs[i].Attempt = again.Due, again.Body, again.Attempt
	if again.Due.IsZero() {
		s.jobs[i].Due = time.Now().Add(again.After)
	}
	return nil
}

func (s *rows) put(j store.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.Tenant = "acme"
	s.jobs = append(s.jobs, j)
}

func (s *rows) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := []string{}
	for _, j := range s.jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// try is one call of a handler.
type try struct {
	At      time.Duration
	ID      string
	Attempt int
}

type bench struct {
	*rows
	*Runner
	begin time.Time
	stop  func()
	mu    sync.Mutex
	tries []try
}

// start runs a runner in the bubble; do is called in each try, which is noted.
func start(t *testing.T, c Config, do Handler) *bench {
	t.Helper()
	if c.Concurrency == 0 {
		c.Concurrency = 2
	}
	if c.Poll == 0 {
		c.Poll = time.Hour
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	m, err := NewMetrics(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{rows: &rows{leased: map[string]time.Time{}}, begin: time.Now()}
	b.Runner = New(c, b.rows, tracenoop.Tracer{}, m, slog.New(slog.NewTextHandler(t.Output(), nil)))
	b.Handle(map[store.JobKind]Handler{store.JobAfterTurn: func(ctx context.Context, j store.Job) (*store.Job, error) {
		b.mu.Lock()
		b.tries = append(b.tries, try{time.Since(b.begin), j.ID, j.Attempt})
		b.mu.Unlock()
		if got := principal.Tenant(ctx); got != j.Tenant {
			t.Errorf("the tenant is %q", got)
		}
		return do(ctx, j)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	synctest.Wait()
	return b
}

func (b *bench) add(ids ...string) {
	for _, id := range ids {
		b.put(store.Job{Kind: store.JobAfterTurn, ID: id, Due: time.Now()})
	}
	b.Wake()
	synctest.Wait()
}

func (b *bench) want(t *testing.T, tries []try, left ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := cmp.Diff(tries, b.tries); d != "" {
		t.Errorf("tries: %s", d)
	}
	if d := cmp.Diff(append([]string{}, left...), b.ids()); d != "" {
		t.Errorf("left: %s", d)
	}
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the bubble's clock

func TestAJobRunsWhenTheRunnerIsWokenOrLooksByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{Poll: time.Minute}, func(context.Context, store.Job) (*store.Job, error) { return nil, nil })
		b.add("woken")
		b.put(store.Job{Kind: store.JobAfterTurn, ID: "later", Due: time.Now().Add(90 * time.Second)})
		b.put(store.Job{Kind: store.JobWebhook, ID: "of another kind"})
		pass(5 * time.Minute)
		b.stop()
		b.want(t, []try{{0, "woken", 1}, {2 * time.Minute, "later", 1}}, "of another kind")
	})
}

func TestARunnerWithoutHandlersLeavesJobsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{Poll: time.Minute}, nil)
		clear(b.handlers)
		b.add("somebody's")
		b.stop()
		b.want(t, nil, "somebody's")
	})
}

func TestAJobThatFailsIsTriedAgainWithGrowingDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{Poll: time.Millisecond}, func(_ context.Context, j store.Job) (*store.Job, error) {
			if j.Attempt < 6 {
				return &store.Job{}, errors.New("not yet")
			}
			return nil, nil
		})
		b.add("a")
		pass(time.Minute) // all the waits together are shorter, and it looks every millisecond
		b.stop()
		if len(b.tries) != 6 || len(b.ids()) != 0 {
			t.Fatalf("tries %v, left %v", b.tries, b.ids())
		}
		for i, mean := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second} {
			wait := b.tries[i+1].At - b.tries[i].At
			if wait < mean/2 || wait > mean*3/2+2*time.Millisecond {
				t.Errorf("wait %d was %s", i+1, wait)
			}
		}
	})
}

func TestWhatAHandlerSaysDecides(t *testing.T) {
	for _, c := range []struct {
		name  string
		first func() (*store.Job, error)
		tries []try
		left  []string
	}{
		{"done is done", func() (*store.Job, error) { return nil, nil }, []try{{0, "a", 1}}, nil},
		{"done for now comes again when it is due, as a first try", func() (*store.Job, error) {
			return &store.Job{Due: time.Now().Add(10 * time.Second)}, nil
		}, []try{{0, "a", 1}, {10 * time.Second, "a", 1}}, nil},
		{"a permanent error is given up", func() (*store.Job, error) {
			return nil, backoff.Permanent(errors.New("never"))
		}, []try{{0, "a", 1}}, nil},
		{"an error may say when to try again", func() (*store.Job, error) {
			return nil, backoff.RetryAfter(42)
		}, []try{{0, "a", 1}, {42 * time.Second, "a", 2}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				// Nothing but the due time wakes the runner.
				b := start(t, Config{Poll: time.Hour}, func(context.Context, store.Job) (*store.Job, error) {
					if n++; n == 1 {
						return c.first()
					}
					return nil, nil
				})
				b.add("a")
				pass(time.Hour)
				b.stop()
				b.want(t, c.tries, c.left...)
			})
		})
	}
}

func TestNoMoreJobsRunAtOnceThanThereIsRoomForAndNoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		b := start(t, Config{Concurrency: 3}, func(context.Context, store.Job) (*store.Job, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			pass(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return nil, nil
		})
		b.add("a", "b", "c", "d", "e", "f", "g", "h")
		pass(10 * time.Second)
		b.stop()
		if most != 3 || len(b.ids()) != 0 || len(b.tries) != 8 {
			t.Errorf("%d at once, tries %v, left %v", most, b.tries, b.ids())
		}
	})
}

func TestATryEndsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{Timeout: 10 * time.Second}, func(ctx context.Context, j store.Job) (*store.Job, error) {
			if j.Attempt == 1 {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return nil, nil
		})
		b.add("a")
		pass(10*time.Second - time.Millisecond)
		b.want(t, []try{{0, "a", 1}}, "a")
		pass(time.Minute)
		b.stop()
		if len(b.tries) != 2 || len(b.ids()) != 0 {
			t.Errorf("tries %v, left %v", b.tries, b.ids())
		}
	})
}

func TestARunnerThatStopsGivesItsJobsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{}, func(ctx context.Context, _ store.Job) (*store.Job, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		b.add("a")
		b.stop()
		jobs, err := b.ClaimJobs(t.Context(), store.JobClaim{Kinds: []store.JobKind{store.JobAfterTurn}, Limit: 1})
		if err != nil || len(jobs) != 1 || jobs[0].Attempt != 1 {
			t.Errorf("left %v, %v", jobs, err)
		}
	})
}

func TestARunnerThatDrainsLetsItsJobsEndAndBeginsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{Poll: time.Second}, func(ctx context.Context, _ store.Job) (*store.Job, error) {
			select {
			case <-time.After(10 * time.Second):
				return nil, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		b.add("a")
		time.AfterFunc(time.Second, func() { b.put(store.Job{Kind: store.JobAfterTurn, ID: "late"}) })
		b.Drain(t.Context())
		if took := time.Since(b.begin); took != 10*time.Second {
			t.Errorf("drained after %s", took)
		}
		b.stop()
		b.want(t, []try{{0, "a", 1}}, "late")
	})
}

func TestAJobThatCannotBeEndedIsDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = start(t, Config{Poll: time.Second, Timeout: 10 * time.Second}, func(_ context.Context, j store.Job) (*store.Job, error) {
			b.rows.mu.Lock()
			defer b.rows.mu.Unlock()
			b.down = j.Attempt == 1
			return nil, nil
		})
		b.add("a")
		pass(3 * time.Second)
		b.rows.mu.Lock()
		b.down = false
		b.rows.mu.Unlock()
		pass(time.Minute)
		b.stop()
		// The claim lasts for half as long again as a try may.
		b.want(t, []try{{0, "a", 1}, {15 * time.Second, "a", 2}})
	})
}
