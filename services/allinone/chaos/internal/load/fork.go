package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

const (
	// forkOneIn is in how many rounds of a session one begins with a fork.
	forkOneIn = 8
	// maxForks bounds the forks of a run: each is a session to follow, with a workspace of its own.
	maxForks = 200
)

func (r replica) fork(ctx context.Context, session, turn, key string) (string, error) {
	resp, err := r.client.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: session, Turn: turn, RequestId: key})
	return resp.GetSession().GetName(), judge("ForkSession", err)
}

func (r rest) fork(ctx context.Context, session, turn, key string) (string, error) {
	s := &sessionv1.Session{}
	err := r.post(ctx, "/v1/"+session+":fork", fmt.Sprintf(`{"turn":%q}`, turn), key, func(b []byte) error { return protojson.Unmarshal(b, s) })
	return s.GetName(), err
}

// branch has another client fork the session from any of its ended turns, while others go on in it, and talk
// in the fork for a while.
func (c *client) branch(ctx context.Context, session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var turns []string
	for _, a := range c.record.Accepted {
		if c.ended[a.Turn] {
			turns = append(turns, a.Turn)
		}
	}
	if len(turns) == 0 || c.record.Fork != nil || c.record.Tenant != "" || c.left || c.load.forks.Add(1) > maxForks {
		return
	}
	turn := turns[c.rand.IntN(len(turns))]
	r := rand.New(rand.NewPCG(c.rand.Uint64(), 0)) //nolint:gosec // a schedule, not a secret
	c.people.Go(func() {
		wait(ctx, time.Duration(r.IntN(800))*time.Millisecond)
		c.fork(ctx, session, turn, r)
	})
}

// fork forks the session until the fork is acknowledged or refused, and now and then once more.
func (c *client) fork(ctx context.Context, session, turn string, r *rand.Rand) {
	f := &record.Fork{From: session, Turn: turn, Begin: time.Now()}
	do := func(ctx context.Context, e entry, key string) (string, error) { return e.fork(ctx, session, turn, key) }
	name, key, ok := c.mutate(ctx, r, do)
	if !ok {
		if name != "" {
			c.mu.Lock()
			c.record.Unforked = append(c.record.Unforked, turn)
			c.mu.Unlock()
		}
		return
	}
	f.RequestID, f.Time = key, time.Now()
	if r.IntN(3) == 0 {
		try, cancel := context.WithTimeout(ctx, attemptTime)
		if again, err := do(try, c.entry(r), key); err == nil {
			f.Others = append(f.Others, again)
		}
		cancel()
	}
	next := c.load.client(&record.Session{Name: name, Fork: f})
	c.load.drivers.Go(func() { next.converse(ctx, name, 1+r.IntN(3)) })
}
