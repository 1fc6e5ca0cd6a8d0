package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/bubblewrap"
)

// creation makes many sandboxes, one after the other and then with four makers,
// and looks at what they take while nothing runs in them.
func (b *bench) creation(ctx context.Context) error {
	one, err := b.create(ctx, 1)
	if err != nil {
		return err
	}
	four, err := b.create(ctx, 4)
	if err != nil {
		return err
	}
	row("a sandbox made, one after the other", "%s, %.0f a second", one.took, one.rate)
	row("… by four at once", "%s, %.0f a second", four.took, four.rate)
	spares, err := b.takeOver(ctx)
	if err != nil {
		return err
	}
	row("a spare one taken over", "%s", spares)
	row("memory of an idle one, all in", "%.2f MiB; %.2f when it has run a command", one.memory, one.used)
	goal(one.took.at(0.5) < 15*time.Millisecond, "ready after %s at the median; goal: 15 ms", milliseconds(one.took.at(0.5)))
	goal(spares.at(0.5) < time.Millisecond, "ready after %s from the spare ones; goal: 1 ms", milliseconds(spares.at(0.5)))
	goal(one.rate >= 70, "%.0f a second; goal: 70", one.rate)
	goal(four.rate >= 120, "%.0f a second with four makers; goal: 120", four.rate)
	goal(max(one.memory, one.used) <= 1.2, "%.2f MiB idle at most; goal: 1.2", max(one.memory, one.used))
	return nil
}

// made is what making sandboxes took.
type made struct {
	took   times
	rate   float64 // a second
	memory float64 // MiB each
	used   float64 // the same once each has run a command
}

func (b *bench) create(ctx context.Context, makers int) (m made, err error) {
	r, err := b.runner(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	all := make([]box.Sandbox, b.sandboxes)
	for i := range all {
		if all[i], err = b.sandbox(); err != nil {
			return m, err
		}
	}
	first, err := b.sandbox()
	if err != nil {
		return m, err
	}
	if err := r.Warm(ctx, first); err != nil { // so that memory shared by all does not count
		return m, err
	}
	before := heldMemory()
	begun := time.Now()
	if m.took, err = makeAll(ctx, r, all, makers); err != nil {
		return m, err
	}
	m.rate = float64(b.sandboxes) / time.Since(begun).Seconds()
	each := func() float64 { return float64(heldMemory()-before) / float64(b.sandboxes) / (1 << 20) }
	m.memory = each()
	for _, s := range all {
		if err := finish(r.Start(ctx, truth(s, s.Limits))); err != nil {
			return m, err
		}
	}
	m.used = each()
	return m, nil
}

// takeOver makes sandboxes ahead of time and gives each to a workspace, as a new
// session does.
func (b *bench) takeOver(ctx context.Context) (took times, err error) {
	r, err := b.runner(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for range 50 {
		s, err := b.sandbox()
		if err != nil {
			return nil, err
		}
		spare, taken := s, s
		spare.Spare = true
		taken.ID, taken.Workspace, taken.Home = s.ID+".taken", s.Workspace+".taken", s.Home+".taken"
		if err := r.Warm(ctx, spare); err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := errors.Join(os.Rename(s.Workspace, taken.Workspace), os.Rename(s.Home, taken.Home)); err != nil {
			return nil, err
		}
		r.Move(s.Workspace, taken)
		if err := r.Warm(ctx, taken); err != nil { // it is there, and ready
			return nil, err
		}
		took = append(took, time.Since(begun))
		if err := finish(r.Start(ctx, truth(taken, taken.Limits))); err != nil {
			return nil, err
		}
	}
	return took, nil
}

func makeAll(ctx context.Context, r *bubblewrap.Runner, all []box.Sandbox, makers int) (took times, err error) {
	todo := make(chan box.Sandbox, len(all))
	for _, s := range all {
		todo <- s
	}
	close(todo)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range makers {
		wg.Go(func() {
			for s := range todo {
				begun := time.Now()
				fault := r.Warm(ctx, s)
				mu.Lock()
				took = append(took, time.Since(begun))
				err = errors.Join(err, fault)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return took, err
}

// held are what programs and the kernel hold that they cannot give back, as /proc/meminfo
// names it. What is free says less: the kernel keeps pages for each processor that it
// counts nowhere, and hands these out first.
var held = []string{"AnonPages:", "Shmem:", "SUnreclaim:", "KernelStack:", "PageTables:", "Percpu:"}

// heldMemory is the machine's, in bytes.
func heldMemory() (bytes int64) {
	debug.FreeOSMemory()
	raw, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) > 1 && slices.Contains(held, f[0]) {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			bytes += kib << 10
		}
	}
	return bytes
}
