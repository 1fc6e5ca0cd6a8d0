package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// TestATurnWithASubagentEndsOnceWhereverItsReplicaDies kills the only replica at each commit.
func TestATurnWithASubagentEndsOnceWhereverItsReplicaDies(t *testing.T) {
	r := recovery{
		scenario: lead, change: withSubagents,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "one"), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			return errors.Join(c.executed(2), ends(log, sessionv1.TurnState_TURN_STATE_COMPLETE))
		},
	}
	writes := r.writes(t, faulty.Commit)
	for n := 1; n <= writes; n++ {
		if sampled() && n%8 != 0 {
			continue
		}
		for _, when := range []faulty.When{faulty.Before, faulty.After} {
			for _, f := range prove.Sample([]fate{gone, cutOff, frozen}, 3) {
				synctest.Test(t, func(t *testing.T) {
					r.die(t, fmt.Sprintf("commit %d, %d, %s", n, when, f), faulty.Commit, n, when, f)
				})
			}
		}
	}
}

// suspecting is a store whose sessions all may have crashed their holders.
type suspecting struct{ store.Store }

func (s suspecting) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	if c.Suspects == 0 {
		return nil, nil
	}
	c.Limit = c.Suspects
	leases, err := s.Store.Claim(ctx, c)
	for i := range leases {
		leases[i].Suspect = true
	}
	return leases, err
}

// TestASubagentHasItsLastTryWhileItsParentHasIts has both be suspect: the parent waits for
// the subagent, and must not keep it from being claimed.
func TestASubagentHasItsLastTryWhileItsParentHasIts(t *testing.T) {
	t.Parallel()
	f := startOn(t, func(s store.Store) store.Store { return suspecting{s} }, lead, withSubagents)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "block")
	<-f.peers.blocked
	f.restart(t)
	select {
	case <-f.peers.blocked:
	case <-ctx.Done():
		t.Fatal("the subagent is not claimed while its parent waits for it")
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the turn ended %v", end)
	}
}
