// Package faults injects faults into a cluster: it kills programs, stops them for a while, restarts the
// database and cuts connections, by a seeded schedule.
package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/cluster"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// Options configure the faults.
type Options struct {
	Seed     uint64
	Kills    int           // programs that are killed or, Postgres, shut down at once; other faults come besides
	Interval time.Duration // between faults, on average
	LeaseTTL time.Duration // programs are stopped for longer
	Only     []string      // services, all when empty
	Log      func(format string, args ...any)
}

// restartDelay is the longest time that a killed program stays away.
const restartDelay = 1200 * time.Millisecond

// calm is how long, besides the lease's time, no other fault happens after some of the kills of a session
// replica: their takeovers are measured alone.
const calm = 2 * time.Second

// grace is how long a program may take to end when it is told to.
const grace = 15 * time.Second

// action is one possible fault.
type action struct {
	kind    record.Kind
	service string
	target  string
	weight  int
	do      func(ctx context.Context, f *record.Fault) error
}

// Runner injects the faults.
type Runner struct {
	options Options
	cluster *cluster.Cluster
	rand    *rand.Rand
	actions []action

	mu     sync.Mutex
	busy   map[string]bool // targets that something is being done to
	faults []*record.Fault
	errs   error
	work   sync.WaitGroup
}

// New returns a runner.
func New(c *cluster.Cluster, o Options) *Runner {
	r := &Runner{options: o, cluster: c, busy: map[string]bool{}, rand: rand.New(rand.NewPCG(o.Seed, 2))} //nolint:gosec // a schedule, not a secret
	for _, p := range c.Sessions {
		r.program(p, 14, 3, 3)
	}
	for _, p := range c.Tools {
		r.program(p, 10, 2, 2)
	}
	r.program(c.Gateway, 10, 1, 2)
	r.program(c.Sandbox, 8, 1, 0)
	r.add(action{record.Kill, record.Postgres, record.Postgres, 6, r.crash(syscall.SIGKILL)})
	r.add(action{record.Immediate, record.Postgres, record.Postgres, 6, r.crash(syscall.SIGQUIT)})
	r.add(action{record.Terminate, record.Postgres, record.Postgres, 3, r.crash(syscall.SIGINT)}) // a fast shutdown, which tidies up
	r.add(action{record.Pause, record.Postgres, record.Postgres, 4, r.hang})
	for _, name := range slices.Sorted(maps.Keys(c.Links)) { // in an order, for the schedule
		r.links(name, c.Links[name])
	}
	return r
}

func (r *Runner) add(a action) {
	if len(r.options.Only) > 0 {
		wanted := false
		for _, s := range r.options.Only {
			wanted = wanted || s == a.service
		}
		if !wanted {
			return
		}
	}
	r.actions = append(r.actions, a)
}

func (r *Runner) program(p *cluster.Process, kill, pause, term int) {
	r.add(action{record.Kill, p.Service, p.Name, kill, func(ctx context.Context, f *record.Fault) error {
		if p.Service == record.SessionService {
			f.Held = r.cluster.Held(ctx, p)
		}
		f.Begin = time.Now()
		if err := p.End(syscall.SIGKILL, grace); err != nil {
			return err
		}
		r.away(ctx)
		return p.Start(context.WithoutCancel(ctx))
	}})
	r.add(action{record.Pause, p.Service, p.Name, pause, func(ctx context.Context, _ *record.Fault) error {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		r.pause(ctx, r.options.LeaseTTL+r.random(2*time.Second))
		return p.Signal(syscall.SIGCONT)
	}})
	r.add(action{record.Terminate, p.Service, p.Name, term, func(ctx context.Context, _ *record.Fault) error {
		if err := p.End(syscall.SIGTERM, grace); err != nil {
			return err
		}
		r.away(ctx)
		return p.Start(context.WithoutCancel(ctx))
	}})
}

func (r *Runner) crash(s syscall.Signal) func(context.Context, *record.Fault) error {
	return func(ctx context.Context, _ *record.Fault) error {
		if err := r.cluster.Postgres.Crash(s); err != nil {
			return err
		}
		r.away(ctx)
		return r.cluster.Postgres.Restart(context.WithoutCancel(ctx))
	}
}

// hang stops Postgres for longer than a lease lasts.
func (r *Runner) hang(ctx context.Context, _ *record.Fault) error {
	if err := r.cluster.Postgres.Suspend(); err != nil {
		return err
	}
	r.pause(ctx, r.options.LeaseTTL+r.random(2*time.Second))
	return r.cluster.Postgres.Resume()
}

// links adds the faults that cut and stall the connections to a program.
func (r *Runner) links(name string, link *cluster.Proxy) {
	service := name
	for _, p := range r.cluster.Processes() {
		if p.Name == name {
			service = p.Service
		}
	}
	r.add(action{record.Cut, service, "links to " + name, 2, func(context.Context, *record.Fault) error {
		link.Cut()
		return nil
	}})
	r.add(action{record.Stall, service, "links to " + name, 1, func(ctx context.Context, _ *record.Fault) error {
		link.Stall()
		r.pause(ctx, r.random(2*r.options.LeaseTTL))
		link.Flow()
		return nil
	}})
}

// random returns a time up to most. It is drawn apart from the schedule, which must not depend on the
// duration of faults.
func (r *Runner) random(most time.Duration) time.Duration {
	return rand.N(most) //nolint:gosec // a schedule, not a secret
}

func (r *Runner) away(ctx context.Context) { r.pause(ctx, r.random(restartDelay)) }

func (r *Runner) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// killing reports whether a fault counts as a kill.
func killing(k record.Kind) bool { return k == record.Kill || k == record.Immediate }

// Run injects faults until there were enough kills or ctx ends, and returns when all programs run
// again.
func (r *Runner) Run(ctx context.Context) ([]record.Fault, error) {
	for kills := 0; kills < r.options.Kills && ctx.Err() == nil && r.failed() == nil; {
		r.pause(ctx, time.Duration(r.rand.ExpFloat64()*float64(r.options.Interval)))
		a := r.pick()
		alone := a.kind == record.Kill && a.service == record.SessionService && r.rand.IntN(6) == 0
		if alone {
			r.work.Wait()
			r.pause(ctx, time.Second)
		}
		if !r.begin(ctx, a) {
			continue
		}
		if killing(a.kind) {
			kills++
		}
		if alone {
			r.pause(ctx, r.options.LeaseTTL+calm)
		}
	}
	r.work.Wait()
	var faults []record.Fault
	for _, f := range r.faults {
		faults = append(faults, *f)
	}
	return faults, r.errs
}

func (r *Runner) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs
}

func (r *Runner) pick() action {
	sum := 0
	for _, a := range r.actions {
		sum += a.weight
	}
	n := r.rand.IntN(sum)
	for _, a := range r.actions {
		if n -= a.weight; n < 0 {
			return a
		}
	}
	panic("the weights of the faults do not add up to their sum")
}

// begin injects a fault in the background, unless another one affects its target.
func (r *Runner) begin(ctx context.Context, a action) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[a.target] {
		return false
	}
	r.busy[a.target] = true
	f := &record.Fault{Kind: a.kind, Service: a.service, Target: a.target, Begin: time.Now()}
	r.faults = append(r.faults, f)
	r.work.Go(func() {
		err := a.do(ctx, f)
		f.End = time.Now()
		r.options.Log("%s %s, back after %s", a.kind, a.target, f.End.Sub(f.Begin).Round(time.Millisecond))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.busy[a.target] = false
		if err != nil && !errors.Is(err, context.Canceled) {
			r.errs = errors.Join(r.errs, fmt.Errorf("%s %s: %w", a.kind, a.target, err))
		}
	})
	return true
}
