package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/wires"
)

// wiredOneIn is how many sessions there are for each that is followed through all protocols.
const wiredOneIn = 4

// wire follows the session through all protocols of the gateway at the same time.
func (c *client) wire(ctx context.Context, name string) {
	if c.record.Fork != nil || c.record.Tenant != "" || c.number%wiredOneIn != 0 {
		return
	}
	t := wires.Target{Session: name, Agent: c.load.options.Agent, HTTP: c.load.options.HTTP, GRPC: c.load.gateway, Client: c.load.pages}
	for i, w := range wires.All {
		f := &record.WireFollower{Wire: w.Name, Told: w.Told}
		c.record.Wires = append(c.record.Wires, f)
		r := rand.New(rand.NewPCG(c.rand.Uint64(), uint64(i))) //nolint:gosec // a schedule, not a secret
		c.load.follow.Go(func() { c.wired(context.WithoutCancel(ctx), w.New(t), f, r) })
	}
}

// wired follows over one connection after the other, until the load ends, and then comes to the end of the log.
func (c *client) wired(ctx context.Context, w wires.Follower, f *record.WireFollower, r *rand.Rand) {
	for c.load.ending.Err() == nil {
		select { // nothing happens any more: come back at the end
		case <-c.gone:
			<-c.load.ending.Done()
			continue
		default:
		}
		life, cancel := context.WithTimeout(ctx, time.Duration(200+r.IntN(8000))*time.Millisecond)
		stop := context.AfterFunc(c.load.ending, cancel) //nolint:contextcheck // the followers' own end
		err := w.Follow(life, r.IntN(2) == 0)
		f.Connections++
		if err != nil && life.Err() == nil {
			f.Broken++
		}
		stop()
		cancel()
		if err != nil && !errors.Is(err, wires.ErrAgain) && f.Failed == "" {
			f.Failed = err.Error()
		}
		wait(c.load.ending, time.Duration(50+r.IntN(200))*time.Millisecond) //nolint:contextcheck // the same
	}
	c.mu.Lock()
	target := c.target
	c.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		shown, err := w.End(within, target)
		f.Connections++
		if err == nil {
			f.Shown = shown
			return
		}
		if !errors.Is(err, wires.ErrAgain) || within.Err() != nil {
			f.Failed = err.Error()
			return
		}
		wait(within, 100*time.Millisecond)
	}
}
