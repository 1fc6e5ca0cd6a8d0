package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/sse"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

// rates are the tokens a second that a turn streams, from the goal down.
var rates = []float64{50, 25, 15, 10, 5, 2, 1}

const (
	deliveryGoal = 50 * time.Millisecond
	// settle is how long turns stream before they are measured, window how long
	// they are, and lead how long all of them may take to begin.
	settle = 2 * time.Second
	window = 8 * time.Second
	lead   = 6 * time.Second
)

// measureStreams runs an all-in-one Fairlead on Postgres with many concurrent
// turns, as fast as possible within the goal.
func measureStreams(ctx context.Context, b *bench) error {
	database, err := b.database(ctx)
	if err != nil {
		return err
	}
	f, err := fleet.Run(ctx, b.shape(database, false))
	if err != nil {
		return err
	}
	defer f.Stop()
	sessions := make([]string, b.turns)
	for i := range sessions {
		if sessions[i], err = f.Session(ctx); err != nil {
			return err
		}
	}
	b.printf("   Fairlead, Postgres, the model server and the clients share the CPUs; the CPU of each is in cores.\n")
	tested := rates
	if b.rate > 0 {
		tested = []float64{b.rate}
	}
	for _, rate := range tested {
		if err := b.rest(ctx, f); err != nil {
			return err
		}
		l, err := b.load(ctx, f, sessions, rate)
		if err != nil {
			return err
		}
		met := l.times.At(0.99) < deliveryGoal && l.share() > 0.99
		b.row(fmt.Sprintf("%d turns of %g tokens/s", b.turns, rate), "%s, %.0f of %.0f tokens/s", l.times, float64(len(l.times))/window.Seconds(), rate*float64(b.turns))
		b.row("  CPU", "Fairlead %.2f, Postgres %.2f, model server %.2f, clients %.2f", l.cpu[0], l.cpu[1], l.cpu[2], l.cpu[3])
		b.row("  CPU for each token", "Fairlead %v, Postgres %v, model server %v, clients %v", l.each[0], l.each[1], l.each[2], l.each[3])
		b.row("  memory", "Fairlead %d MB: %.0f kB a running turn", l.rss>>20, float64(l.rss-l.rssBefore)/float64(b.turns)/1024)
		b.goal(met, "p99 delivery %s; goal: %s", stat.Milliseconds(l.times.At(0.99)), stat.Milliseconds(deliveryGoal))
		if met {
			break
		}
	}
	return nil
}

// restless is how many cores Fairlead and Postgres may use while they rest.
const restless = 0.1

// rest waits until the work that follows a load is done: ended turns are folded
// and indexed.
func (b *bench) rest(ctx context.Context, f *fleet.Fairlead) error {
	const look = time.Second
	for ctx.Err() == nil {
		before := b.cpu(f)
		sleepUntil(ctx, time.Now().Add(look))
		after := b.cpu(f)
		if used := after[0] + after[1] - before[0] - before[1]; used.Seconds() < restless*look.Seconds() {
			return nil
		}
	}
	return ctx.Err()
}

// loaded is the result of a load.
type loaded struct {
	times          stat.Times
	asked          float64    // tokens that the model was to send in the window
	cpu            [4]float64 // cores of Fairlead, Postgres, the model server and the clients
	rss, rssBefore int64
	each           [4]time.Duration // their processor time for each token, from the first token to the last
}

func (l loaded) share() float64 { return float64(len(l.times)) / l.asked }

// load runs a turn in every session at once and measures a window of it.
func (b *bench) load(ctx context.Context, f *fleet.Fairlead, sessions []string, rate float64) (loaded, error) {
	l := loaded{asked: rate * float64(len(sessions)) * window.Seconds(), rssBefore: f.RSS()}
	every := time.Duration(float64(time.Second) / rate)
	start := time.Now().Add(lead)
	from := start.Add(settle + every)
	to := from.Add(window)
	var g errgroup.Group
	var mu sync.Mutex
	tokens := 0
	for i, session := range sessions {
		p := provider.Plan{
			Tokens: int((settle+window)/every) + 3, Every: every,
			Start: start.Add(every * time.Duration(i) / time.Duration(len(sessions))), // spread evenly
		}
		g.Go(func() error {
			var mine stat.Times
			count := 0
			_, err := turn(ctx, f, session, p, func(t sse.Token) {
				count++
				if !t.Sent.Before(from) && t.Sent.Before(to) {
					mine = append(mine, t.Received.Sub(t.Sent))
				}
			})
			mu.Lock()
			defer mu.Unlock()
			l.times = append(l.times, mine...)
			tokens += count
			return err
		})
	}
	sleepUntil(ctx, start)
	begun := b.cpu(f)
	sleepUntil(ctx, from)
	before := b.cpu(f)
	sleepUntil(ctx, to)
	after := b.cpu(f)
	l.rss = f.RSS()
	for i := range l.cpu {
		l.cpu[i] = (after[i] - before[i]).Seconds() / window.Seconds()
	}
	err := g.Wait()
	after = b.cpu(f)
	for i := range l.each {
		l.each[i] = (after[i] - begun[i]) / time.Duration(max(tokens, 1))
	}
	return l, err
}

// cpu returns the processor time of Fairlead, Postgres, the model server and this
// process.
func (b *bench) cpu(f *fleet.Fairlead) [4]time.Duration {
	return [4]time.Duration{f.CPU(), fleet.CPU(b.postgres.PID()), fleet.CPU(b.model.PID()), ownCPU()}
}

func sleepUntil(ctx context.Context, t time.Time) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
