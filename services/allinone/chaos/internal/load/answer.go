package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// question is a call that a person is asked about.
type question struct{ call, digest string }

// asked lets people answer, unless the clients have left.
func (c *client) asked(ctx context.Context, a *sessionv1.ApprovalRequested, seed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return
	}
	q := question{a.GetCallId(), a.GetDigest()}
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a schedule, not a secret
	think, approved := time.Duration(r.IntN(1500))*time.Millisecond, r.IntN(4) > 0
	c.people.Go(func() { c.answer(ctx, q, approved, think, r) })
	if r.IntN(3) == 0 { // another person says the opposite at about the same time: one of the two counts
		other := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a schedule, not a secret
		c.people.Go(func() { c.answer(ctx, q, !approved, think, other) })
	}
}

// leave waits for the people who answer; no others will.
func (c *client) leave() {
	c.mu.Lock()
	c.left = true
	c.mu.Unlock()
	c.people.Wait()
}

// answer answers a question until the answer is acknowledged or too late, and now and then once more.
func (c *client) answer(ctx context.Context, q question, approved bool, think time.Duration, r *rand.Rand) {
	wait(ctx, think)
	c.mu.Lock()
	session := c.record.Name
	c.mu.Unlock()
	say := func(ctx context.Context, e entry, key string) (string, error) {
		return "", e.approve(ctx, session, q, approved, key)
	}
	late, key, ok := c.mutate(ctx, r, say)
	if !ok && late == "" {
		return // the run is over
	}
	if ok && r.IntN(4) == 0 {
		try, cancel := context.WithTimeout(ctx, attemptTime)
		e := c.entry(r)
		if _, err := say(try, e, key); err != nil && !errors.Is(err, errAgain) {
			c.refused(e, fmt.Errorf("the repeated answer: %w", err))
		}
		cancel()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Answers = append(c.record.Answers, record.Answer{
		RequestID: key, CallID: q.call, Approved: approved, TooLate: late, Time: time.Now(),
	})
}
