package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/wires"
)

const (
	// gatewayMemory is what an idle follower may take of the gateway, and wholeMemory of all in one.
	gatewayMemory, wholeMemory = 30 << 10, 20 << 10
	// holders is how many sessions share the idle followers.
	holders = 50
	// settled is how long followers wait before their memory is measured, and quietFor how long their CPU is.
	settled, quietFor = 50 * time.Second, 10 * time.Second
	// crowd is how many clients follow one busy session.
	crowd = 1000
)

// measureFollowers measures what clients need that wait for turns in which nothing happens, and what one event costs when
// many clients follow it.
func measureFollowers(ctx context.Context, b *bench) error {
	if err := b.crowd(ctx); err != nil {
		return err
	}
	if err := b.idle(ctx, allWires[0], false, wholeMemory); err != nil {
		return err
	}
	for _, w := range allWires {
		if err := b.idle(ctx, w, true, gatewayMemory); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// idle measures the memory of a program, in its resident set, for clients of one protocol. The gateway is a process of
// its own, or part of all in one.
func (b *bench) idle(ctx context.Context, w wire, four bool, most float64) error {
	f, err := fleet.Run(ctx, b.shape("", four))
	if err != nil {
		return err
	}
	defer f.Stop()
	sessions, err := waiting(ctx, f, holders, provider.Plan{Tokens: 1, First: time.Hour})
	if err != nil {
		return err
	}
	program := f.Processes[len(f.Processes)-1]
	before := fleet.RSS(program.PID())
	begun := time.Now()
	stop, err := follow(ctx, f, w, b.followers, func(i int) string { return sessions[i%len(sessions)] }, func(wires.Token) {})
	defer stop()
	if err != nil {
		return err
	}
	took := time.Since(begun)
	sleepUntil(ctx, time.Now().Add(settled))
	each := float64(fleet.RSS(program.PID())-before) / float64(b.followers)
	cpu := fleet.CPU(program.PID())
	sleepUntil(ctx, time.Now().Add(quietFor))
	cpu = fleet.CPU(program.PID()) - cpu
	b.row(fmt.Sprintf("%d idle followers, %s, %s", b.followers, program.Name, w.name), "opened in %s, %.1f KiB each (RSS), %.2f cores",
		took.Round(100*time.Millisecond), each/1024, cpu.Seconds()/quietFor.Seconds())
	b.goal(each <= most, "%.1f KiB each; goal: %.0f KiB", each/1024, most/1024)
	return nil
}

// follow has clients follow sessions, and returns when all have their streams. stop ends them.
func follow(ctx context.Context, f *fleet.Fairlead, w wire, n int, session func(i int) string, on func(wires.Token)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var following errgroup.Group
	opening, opened := make(chan struct{}, 64), make(chan error, n)
	for i := range n {
		opening <- struct{}{}
		following.Go(func() error {
			told := false
			tell := func(err error) {
				if !told {
					told = true
					<-opening
					opened <- err
				}
			}
			err := w.follow(ctx, f, session(i), func() { tell(nil) }, on)
			tell(err)
			return err
		})
	}
	for range n {
		err = errors.Join(err, <-opened)
	}
	if err != nil {
		err = fmt.Errorf("of %d followers some found no stream: %.300s", n, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return func() {
		cancel()
		_ = following.Wait() // they end because they are stopped
	}, err
}

// crowd compares the processor time of a turn that one client follows with that of a turn that many follow.
func (b *bench) crowd(ctx context.Context) error {
	f, err := fleet.Run(ctx, b.shape("", true))
	if err != nil {
		return err
	}
	defer f.Stop()
	gateway, session := f.Processes[len(f.Processes)-1], f.Processes[len(f.Processes)-2]
	for _, n := range []int{1, crowd} {
		plan := provider.Plan{Tokens: 500, Every: 20 * time.Millisecond, First: 15 * time.Second}
		sessions, err := waiting(ctx, f, 1, plan)
		if err != nil {
			return err
		}
		var got atomic.Int64
		stop, err := follow(ctx, f, allWires[0], n, func(int) string { return sessions[0] }, func(wires.Token) { got.Add(1) })
		if err != nil {
			stop()
			return err
		}
		before := [2]time.Duration{fleet.CPU(gateway.PID()), fleet.CPU(session.PID())}
		within := time.Now().Add(2 * time.Minute)
		for got.Load() < int64(n*plan.Tokens) && time.Now().Before(within) {
			sleepUntil(ctx, time.Now().Add(100*time.Millisecond))
		}
		per := func(p *fleet.Process, before time.Duration) float64 {
			return (fleet.CPU(p.PID()) - before).Seconds() / float64(plan.Tokens) * 1000
		}
		b.row(fmt.Sprintf("a turn of %d tokens, %d followers", plan.Tokens, n), "%d tokens arrived; CPU of each token: gateway %.2f ms, session %.2f ms",
			got.Load(), per(gateway, before[0]), per(session, before[1]))
		stop()
	}
	return nil
}
