package load

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// scrimp works with a short budget until the load stops. It uses one short session after the other, because
// each step of a long one would cost more than the one before.
func (l *Load) scrimp(ctx context.Context, user string) {
	for r := rand.New(rand.NewPCG(l.options.Seed, uint64(user[0]))); ctx.Err() == nil; { //nolint:gosec // a schedule, not a secret
		select {
		case <-l.stop:
			return
		default:
		}
		c := l.client(&record.Session{Tenant: l.options.Tenant, User: user})
		c.drive(ctx, 3+r.IntN(5))
	}
}

// broke waits a while after a budget has ended a turn, so that the session has not said all it has to say
// before there is money again.
func (c *client) broke(ctx context.Context) {
	c.mu.Lock()
	partial := c.partial
	c.partial = false
	c.mu.Unlock()
	if partial {
		wait(ctx, time.Duration(500+c.rand.IntN(4000))*time.Millisecond)
	}
}
