package integration

import (
	"context"
	"errors"
	"fmt"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// hooksThatStay has a command before compactions that runs until it is stopped.
func hooksThatStay(c *session.Config) {
	shortensAfterTwoSteps(c)
	withSpec(func(s *agent.Spec) { s.PreCompaction = "block" })(c)
}

// hookDeaths are recoveries in which a replica dies while the command before a
// compaction runs, which is not a call of a message.
var hookDeaths = []recovery{
	{name: "a rollback while the command before a compaction runs", scenario: shortened + `
  - when: why
    steps: [{text: [because]}]
`, change: hooksThatStay,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "work"), c.hookRuns(ctx), c.arrive(ctx, "why?", rollsBack), c.ended(ctx, 2))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.nothingRuns(), ends(log, interrupted, complete), agree(c.first.peers, conversation), looks(conversation, becauseShape))
		}},
	{name: "a rewind while the command before a compaction runs", scenario: shortened, change: hooksThatStay,
		play: func(ctx context.Context, c *cluster) error {
			var point *sessionv1.Checkpoint
			err := errors.Join(c.send(ctx, "talk"), c.ended(ctx, 1), c.ask(ctx, "make a checkpoint", func(f *fixture) error {
				made, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: c.session, RequestId: "point"})
				point = made.GetCheckpoint()
				return err
			}), c.ask(ctx, "compact", func(f *fixture) error {
				_, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: c.session, RequestId: "compact"})
				return err
			}))
			return errors.Join(err, c.hookRuns(ctx), c.ask(ctx, "rewind", func(f *fixture) error {
				_, err := f.points().RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: c.session, Checkpoint: point.GetName(), RequestId: "back"})
				return err
			}))
		},
		check: func(_ *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			var order []string
			for _, e := range log {
				switch {
				case e.GetSessionCompacted() != nil:
					order = append(order, "compacted")
				case e.GetSessionRewound() != nil:
					order = append(order, "rewound")
				}
			}
			if got := fmt.Sprint(order); got != "[compacted rewound]" || len(conversation) != 2 {
				return fmt.Errorf("the session was %s, and has the conversation\n%s", got, shape(conversation))
			}
			return ends(log, complete)
		}},
}

// hookRuns waits until the command runs, and for a while, in which its replica may die.
func (c *cluster) hookRuns(ctx context.Context) error {
	select {
	case <-c.first.peers.blocked:
	case <-ctx.Done():
		return errors.New("the command did not begin")
	}
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// nothingRuns checks that every command that ran until it was stopped was stopped.
func (c *cluster) nothingRuns() error {
	c.first.peers.mu.Lock()
	defer c.first.peers.mu.Unlock()
	for id := range c.first.peers.cancels {
		if !c.first.peers.cancelled[id] {
			return fmt.Errorf("the command of %s runs on", id)
		}
	}
	return nil
}
