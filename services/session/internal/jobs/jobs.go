// Package jobs runs durable work outside of a turn's loop: rows of the store,
// claimed by any replica, done at least once.
//
// A handler does one job, in the name of the job's tenant, and must be
// idempotent: a replica may die between the work and the end of the job. A job
// that fails is returned and retried after a growing delay, until it succeeds
// or the handler returns backoff.Permanent. The table of Deps has all kinds of jobs.
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

// User is the acting user of a job, towards the peers and in their logs.
const User = "fairlead"

const (
	// firstDelay and lastDelay bound the time between the attempts of a failing job.
	firstDelay = time.Second
	lastDelay  = 5 * time.Minute
	// endTimeout bounds the write of a job's end.
	endTimeout = 5 * time.Second
)

// Handler does a job. Without an error the job is done and removed, unless the
// handler returns when and with which body it must be done again. Its context
// ends after the runner's timeout, or when the server stops; the job is then
// retried.
type Handler func(ctx context.Context, j store.Job) (again *store.Job, err error)

// Config configures a replica.
type Config struct {
	Concurrency int           // jobs that run at the same time
	Poll        time.Duration // how often to look for jobs without a wake
	// Timeout bounds one attempt. A claim lasts half as long again, so an attempt
	// has ended before another replica may begin one.
	Timeout time.Duration
}

// Store is the part of a store that the runner needs.
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
	free    chan struct{} // holds a token for each job that may still be started
	full    atomic.Bool   // the last claim took as many as it could: there may be more
	running sync.WaitGroup
	drain   chan struct{} // closed when no more jobs are to be claimed
	drained func()        // closes drain, once
	done    chan struct{} // closed when Run has returned
}

// New returns a runner; Run does the work.
func New(c Config, s Store, tracer trace.Tracer, m *Metrics, log *slog.Logger) *Runner {
	drain := make(chan struct{})
	return &Runner{
		drain: drain, drained: sync.OnceFunc(func() { close(drain) }), done: make(chan struct{}),
		config: c, store: s, tracer: tracer, metrics: m, log: log,
		look: make(chan struct{}, 1), free: make(chan struct{}, c.Concurrency),
	}
}

// Handle sets the handlers, some of which need parts that wake the runner. It must be called before Run. A job without
// a handler here is left to replicas that have one.
func (r *Runner) Handle(handlers map[store.JobKind]Handler) { r.handlers = handlers }

// Wake makes the runner look for jobs at once. It never blocks.
func (r *Runner) Wake() {
	select {
	case r.look <- struct{}{}:
	default:
	}
}

// Drain stops claiming jobs, and waits until the current ones or ctx have
// ended. Run must have been called.
func (r *Runner) Drain(ctx context.Context) {
	r.drained()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// Run works until ctx ends; then it stops the handlers, waits for them and
// returns their jobs. After Drain it only waits for them. It is called once.
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

// claim starts as many jobs as there is room for.
func (r *Runner) claim(ctx context.Context) {
	r.full.Store(true)                     // jobs that end from here on wake the runner
	room := len(r.free)                    // only this goroutine takes tokens
	if room == 0 || len(r.handlers) == 0 { // without handlers there is nothing to claim: an empty list of kinds would mean all
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

// Try does one job at once, even before it is due and beyond the limit, unless
// it is being done already. Its error says that the job could not be claimed;
// the result of the job shows only in its end. A job that fails is retried later
// like any other.
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

// run does one job and records the result.
func (r *Runner) run(ctx context.Context, j store.Job) {
	r.metrics.claimed(ctx, j)
	ctx, span := r.tracer.Start(ctx, "job "+string(j.Kind), trace.WithAttributes(
		attrKind.String(string(j.Kind)), attrTenant.String(j.Tenant), attribute.Int("fairlead.attempt", j.Attempt)))
	defer span.End()
	ctx = principal.With(ctx, principal.Service(j.Tenant, User))
	begin := time.Now()
	again, err := r.handle(ctx, j)
	how := outcome(ctx, again, err)
	if err != nil {
		span.SetStatus(codes.Error, how)
		again = r.retry(ctx, j, how, err)
	}
	r.metrics.ended(ctx, j, how, time.Since(begin))
	r.recordEnd(ctx, j, again)
}

// handle calls the handler within its time limit.
func (r *Runner) handle(ctx context.Context, j store.Job) (*store.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	again, err := r.handlers[j.Kind](ctx, j)
	if err != nil {
		return nil, err
	}
	return again, nil
}

// Results of an attempt.
const (
	outcomeDone    = "done"
	outcomeAgain   = "again"   // done, and due again later
	outcomeFailed  = "failed"  // to be retried
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

// retry returns how a failed job is retried.
func (r *Runner) retry(ctx context.Context, j store.Job, how string, err error) *store.Job {
	log := r.log.With("kind", j.Kind, "job", j.ID, "tenant", j.Tenant, "attempt", j.Attempt, "error", err)
	switch how {
	case outcomeGivenUp:
		log.ErrorContext(ctx, "a job cannot be done and is given up")
		return nil
	case outcomeStopped:
		// This attempt was interrupted and does not count.
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

// delay returns the wait after this many attempts. It doubles with each and
// varies by up to half, so that jobs that failed together are not retried
// together.
func delay(attempts int) time.Duration {
	b := backoff.ExponentialBackOff{InitialInterval: firstDelay, MaxInterval: lastDelay, Multiplier: 2, RandomizationFactor: 0.5}
	b.Reset()
	wait := b.NextBackOff()
	for range min(attempts, 20) - 1 {
		wait = b.NextBackOff()
	}
	return wait
}

// recordEnd stores the result of a job, even when the server stops. A job whose result
// cannot be stored is done again when the claim has expired.
func (r *Runner) recordEnd(ctx context.Context, j store.Job, again *store.Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := r.store.EndJob(ctx, j, again)
	switch {
	case errors.Is(err, store.ErrStaleEpoch):
		r.log.InfoContext(ctx, "a job was taken over or deleted while it ran", "kind", j.Kind, "job", j.ID, "tenant", j.Tenant)
	case err != nil:
		r.log.WarnContext(ctx, "cannot complete a job; it runs again when its claim expires", "kind", j.Kind, "job", j.ID, "tenant", j.Tenant, "error", fmt.Errorf("end job: %w", err))
	case again != nil && wait(again) < r.config.Poll:
		time.AfterFunc(wait(again), r.Wake)
	}
}

// wait returns about how long it takes until a job is due again.
func wait(again *store.Job) time.Duration {
	if again.Due.IsZero() {
		return again.After
	}
	return time.Until(again.Due)
}
