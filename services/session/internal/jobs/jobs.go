// Package jobs runs the durable work that is no part of a turn's loop: rows of
// the store, claimed by any replica, done at least once.
//
// A handler does one job, in the name of the job's tenant, and must be
// idempotent: a replica may die between the work and the end of the job. A job
// that fails is given back and tried again after a delay that grows from try to
// try, until it goes well or the handler says that it never will
// (backoff.Permanent).
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// User is who acts in a job, towards the peers and in their logs.
const User = "fairlead"

const (
	// firstDelay and lastDelay bound the time between the tries of a job that fails.
	firstDelay = time.Second
	lastDelay  = 5 * time.Minute
	// endTimeout bounds how long the end of a job may take to write.
	endTimeout = 5 * time.Second
)

// Handler does a job. Without an error the job is done and goes away, unless it
// hands back when and with which body it is to be done again. Its context ends
// after the runner's time-out, or when the server stops; the job is then tried
// again.
type Handler func(ctx context.Context, j store.Job) (again *store.Job, err error)

// Config says how a replica takes part.
type Config struct {
	Concurrency int           // jobs that run at the same time
	Poll        time.Duration // how often to look for jobs that nobody told of
	// Timeout bounds one try. A claim lasts half as long again, so a try has ended
	// before another replica may begin one.
	Timeout time.Duration
}

// Store is what the runner needs of a store.
type Store interface {
	ClaimJobs(ctx context.Context, c store.JobClaim) ([]store.Job, error)
	EndJob(ctx context.Context, j store.Job, again *store.Job) error
}

// Runner claims jobs and does them.
type Runner struct {
	config   Config
	store    Store
	handlers map[store.JobKind]Handler
	tracer   trace.Tracer
	metrics  *Metrics
	log      *slog.Logger

	look    chan struct{} // holds a token when there may be something to claim
	free    chan struct{} // holds a token for each job that may run besides
	full    atomic.Bool   // the last claim took all that it could: there may be more
	running sync.WaitGroup
	drain   chan struct{} // closed when nothing is to be claimed any more
	drained func()        // closes drain, once
	done    chan struct{} // closed when Run has returned
}

// New makes a runner; Run does the work. A job whose kind has no handler here is
// left to replicas that have one.
func New(c Config, s Store, handlers map[store.JobKind]Handler, tracer trace.Tracer, m *Metrics, log *slog.Logger) *Runner {
	drain := make(chan struct{})
	return &Runner{
		drain: drain, drained: sync.OnceFunc(func() { close(drain) }), done: make(chan struct{}),
		config: c, store: s, handlers: handlers, tracer: tracer, metrics: m, log: log,
		look: make(chan struct{}, 1), free: make(chan struct{}, c.Concurrency),
	}
}

// Wake makes the runner look for jobs at once. It never blocks.
func (r *Runner) Wake() {
	select {
	case r.look <- struct{}{}:
	default:
	}
}

// Drain claims no more jobs, and waits until those under way have ended or ctx
// has. Run must have been called.
func (r *Runner) Drain(ctx context.Context) {
	r.drained()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// Run works until ctx ends; then it stops the handlers, waits for them and gives
// their jobs back. After Drain it only waits for them. It is called once.
func (r *Runner) Run(ctx context.Context) error {
	defer close(r.done)
	defer r.running.Wait()
	for range cap(r.free) {
		r.free <- struct{}{}
	}
	poll := time.NewTicker(r.config.Poll)
	defer poll.Stop()
	for {
		r.claim(ctx)
		select {
		case <-r.look:
		case <-poll.C:
		case <-r.drain:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// claim begins as many jobs as there is room for.
func (r *Runner) claim(ctx context.Context) {
	r.full.Store(true)                     // who ends from here on wakes us
	room := len(r.free)                    // only this goroutine takes tokens
	if room == 0 || len(r.handlers) == 0 { // without handlers there is nothing to ask for: no kinds would mean all
		return
	}
	claimed, err := r.store.ClaimJobs(ctx, store.JobClaim{
		Kinds: slices.Sorted(maps.Keys(r.handlers)), Limit: room, TTL: r.config.Timeout * 3 / 2,
	})
	if err != nil {
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "cannot claim jobs; will try again", "error", err)
		}
		return
	}
	r.full.Store(len(claimed) == room)
	for _, j := range claimed {
		<-r.free
		r.running.Go(func() {
			r.run(ctx, j)
			r.free <- struct{}{}
			if r.full.Load() {
				r.Wake()
			}
		})
	}
}

// Try does one job at once, before it is due and whatever else runs, if nobody
// does it already, and tells what became of it only by its end. A job that fails
// is tried again later like any other.
func (r *Runner) Try(ctx context.Context, tenant string, kind store.JobKind, id string) error {
	claimed, err := r.store.ClaimJobs(ctx, store.JobClaim{
		Kinds: []store.JobKind{kind}, Tenant: tenant, ID: id, Limit: 1, TTL: r.config.Timeout * 3 / 2,
	})
	if err != nil {
		return fmt.Errorf("claim job: %w", err)
	}
	for _, j := range claimed {
		r.run(ctx, j)
	}
	return nil
}

// run does one job and says what became of it.
func (r *Runner) run(ctx context.Context, j store.Job) {
	r.metrics.claimed(ctx, j)
	ctx, span := r.tracer.Start(ctx, "job "+string(j.Kind), trace.WithAttributes(
		attrKind.String(string(j.Kind)), attrTenant.String(j.Tenant), attribute.Int("fairlead.attempt", j.Attempt)))
	defer span.End()
	ctx = principal.With(ctx, principal.Principal{Tenant: j.Tenant, User: User})
	begin := time.Now()
	again, err := r.handle(ctx, j)
	how := outcome(ctx, again, err)
	if err != nil {
		span.SetStatus(codes.Error, how)
		again = r.retry(ctx, j, how, err)
	}
	r.metrics.ended(ctx, j, how, time.Since(begin))
	r.end(ctx, j, again)
}

// handle calls the handler, for as long as it may take.
func (r *Runner) handle(ctx context.Context, j store.Job) (*store.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	again, err := r.handlers[j.Kind](ctx, j)
	if err != nil {
		return nil, err
	}
	return again, nil
}

// What became of a try.
const (
	outcomeDone    = "done"
	outcomeAgain   = "again"   // done, and to be done again later
	outcomeFailed  = "failed"  // to be tried again
	outcomeStopped = "stopped" // by the end of this server
	outcomeGivenUp = "given_up"
)

func outcome(ctx context.Context, again *store.Job, err error) string {
	permanent := &backoff.PermanentError{}
	switch {
	case err == nil && again == nil:
		return outcomeDone
	case err == nil:
		return outcomeAgain
	case errors.As(err, &permanent):
		return outcomeGivenUp
	case ctx.Err() != nil:
		return outcomeStopped
	}
	return outcomeFailed
}

// retry says how a job goes on that did not go well.
func (r *Runner) retry(ctx context.Context, j store.Job, how string, err error) *store.Job {
	log := r.log.With("kind", j.Kind, "job", j.ID, "tenant", j.Tenant, "attempt", j.Attempt, "error", err)
	switch how {
	case outcomeGivenUp:
		log.ErrorContext(ctx, "a job cannot be done and is given up")
		return nil
	case outcomeStopped:
		// The next replica's try is not one more than there were: this one was cut off.
		return &store.Job{Body: j.Body, Attempt: j.Attempt - 1}
	}
	wait := delay(j.Attempt)
	after := &backoff.RetryAfterError{}
	if errors.As(err, &after) {
		wait = after.Duration
	}
	log.WarnContext(ctx, "a job failed and will be tried again", "in", wait)
	return &store.Job{Body: j.Body, Attempt: j.Attempt, After: wait}
}

// delay is how long to wait after this many tries: twice as long after each,
// and up to half of it more or less, so that what failed together does not come
// back together.
func delay(attempts int) time.Duration {
	b := backoff.ExponentialBackOff{InitialInterval: firstDelay, MaxInterval: lastDelay, Multiplier: 2, RandomizationFactor: 0.5}
	b.Reset()
	wait := b.NextBackOff()
	for range min(attempts, 20) - 1 {
		wait = b.NextBackOff()
	}
	return wait
}

// end writes what becomes of the job, also when the server stops. What cannot be
// written is done again when the claim has lapsed.
func (r *Runner) end(ctx context.Context, j store.Job, again *store.Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := r.store.EndJob(ctx, j, again)
	switch {
	case errors.Is(err, store.ErrStaleEpoch):
		r.log.InfoContext(ctx, "a job was taken over or deleted while it ran", "kind", j.Kind, "job", j.ID, "tenant", j.Tenant)
	case err != nil:
		r.log.WarnContext(ctx, "cannot end a job; it is done again when its claim ends", "kind", j.Kind, "job", j.ID, "tenant", j.Tenant, "error", fmt.Errorf("end job: %w", err))
	case again != nil && wait(again) < r.config.Poll:
		time.AfterFunc(wait(again), r.Wake)
	}
}

// wait is how long it takes, about, until a job is due again.
func wait(again *store.Job) time.Duration {
	if again.Due.IsZero() {
		return again.After
	}
	return time.Until(again.Due)
}
