package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/wires"
)

const (
	// wireAdded is what a wire may add to the time of an event over our own server-sent events, as a share of it.
	wireAdded = 0.2
	// wireTurns is how many turns are followed at once.
	wireTurns = 10
)

// wire is a protocol of the gateway.
type wire struct {
	name string
	// follow opens a stream of a session with a turn. It calls opened when it is open.
	follow func(ctx context.Context, f *fleet.Fairlead, session string, opened func(), on func(wires.Token)) error
}

var allWires = []wire{
	{"sse", func(ctx context.Context, f *fleet.Fairlead, session string, opened func(), on func(wires.Token)) error {
		return wires.Lines(ctx, f.URL+"/v1/"+session+"/events?afterSeq=0", `"text":"`, opened, on)
	}},
	{"websocket", func(ctx context.Context, f *fleet.Fairlead, session string, opened func(), on func(wires.Token)) error {
		return wires.Socket(ctx, f.URL+"/v1/"+session+"/ws", opened, on)
	}},
	{"ai-sdk", func(ctx context.Context, f *fleet.Fairlead, session string, opened func(), on func(wires.Token)) error {
		return wires.Lines(ctx, f.URL+"/v1/ai-sdk/chat/"+url.PathEscape(session)+"/stream", `"delta":"`, opened, on)
	}},
	{"ag-ui", func(ctx context.Context, f *fleet.Fairlead, session string, opened func(), on func(wires.Token)) error {
		return wires.Lines(ctx, f.URL+"/v1/agui/coder/events?threadId="+url.QueryEscape(session), `"delta":"`, opened, on)
	}},
	{"managed", func(ctx context.Context, f *fleet.Fairlead, session string, opened func(), on func(wires.Token)) error {
		return wires.Lines(ctx, f.URL+"/anthropic/v1/"+session+"/events/stream?event_deltas[]=agent.message", `"text":"`, opened, on)
	}},
}

// measureWires compares each protocol with our own server-sent events: the time of an event on its way through the same
// turns.
func measureWires(ctx context.Context, b *bench) error {
	f, err := fleet.Run(ctx, b.shape("", false))
	if err != nil {
		return err
	}
	defer f.Stop()
	for _, w := range allWires[1:] {
		own, its := stat.Times{}, stat.Times{}
		for range 3 {
			if err := b.compareWires(ctx, f, allWires[0], w, &own, &its); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
		added := float64(its.At(0.5)-own.At(0.5)) / float64(own.At(0.5))
		b.row(w.name, "%s; sse beside it %s", its, own)
		b.goal(added <= wireAdded, "added at the median %+.0f%%; goal: at most %.0f%%", 100*added, 100*wireAdded)
	}
	return nil
}

// compareWires has clients of two protocols follow the same turns, and adds the times of their events.
func (b *bench) compareWires(ctx context.Context, f *fleet.Fairlead, one, other wire, ones, others *stat.Times) error {
	plan := provider.Plan{Tokens: 150, Every: 20 * time.Millisecond, First: 2 * time.Second}
	sessions, err := waiting(ctx, f, wireTurns, plan)
	if err != nil {
		return err
	}
	into := [2]*stat.Times{ones, others}
	var mu sync.Mutex
	var g errgroup.Group
	for i := range 2 * wireTurns {
		w, session := one, sessions[i/2]
		if i%2 == 1 {
			w = other
		}
		g.Go(func() error {
			var mine stat.Times
			within, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			err := w.follow(within, f, session, func() {}, func(t wires.Token) {
				mine = append(mine, t.Received.Sub(t.Sent))
				if len(mine) == plan.Tokens {
					cancel()
				}
			})
			if len(mine) < plan.Tokens {
				return fmt.Errorf("%s got %d of %d tokens: %w", w.name, len(mine), plan.Tokens, err)
			}
			mu.Lock()
			defer mu.Unlock()
			*into[i%2] = append(*into[i%2], mine...)
			return nil
		})
	}
	return g.Wait()
}

// waiting makes sessions, each with a turn that waits for the model.
func waiting(ctx context.Context, f *fleet.Fairlead, n int, p provider.Plan) ([]string, error) {
	sessions := make([]string, n)
	for i := range sessions {
		var err error
		if sessions[i], err = f.Session(ctx); err != nil {
			return nil, err
		}
		if _, err = fleet.Post(ctx, f.URL+"/v1/"+sessions[i]+"/turns", `{"text":"`+p.Prompt()+`"}`); err != nil {
			return nil, err
		}
	}
	return sessions, nil
}
