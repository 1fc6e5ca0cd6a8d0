package integration

import (
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session"
)

// TestTwoReplicasShareOneDatabase runs turns on two services with one database:
// each turn runs once, and followers see all of it wherever they are.
func TestTwoReplicasShareOneDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	one := start(t, worked, func(c *session.Config) { c.DatabaseURL = config.Secret(url) })
	two := one.another()
	two.run(t)
	t.Cleanup(func() { two.stop() })
	ctx := t.Context()
	var names []string
	for range 8 {
		names = append(names, one.session(ctx, t))
	}
	for i, name := range names {
		asked, other := one, two
		if i%2 == 1 {
			asked, other = two, one
		}
		turn := asked.create(ctx, t, name, "work")
		here := make(chan []*sessionv1.Event, 1)
		go func() { here <- asked.watch(t, name) }()
		there := other.watch(t, name)
		log := other.log(ctx, t, name)
		for where, seen := range map[string][]*sessionv1.Event{"where the turn was asked for": <-here, "on the other replica": there} {
			if err := (&broken{fixture: asked}).sameTurn(log, seen); err != nil {
				t.Errorf("a follower %s: %v", where, err)
			}
		}
		if got := order(log); len(got) != 1 {
			t.Errorf("turn %s ended %d times", turn.Name, len(got))
		}
	}
	one.peers.mu.Lock()
	defer one.peers.mu.Unlock()
	if len(one.peers.executed) != 4*len(names) {
		t.Errorf("%d calls were executed, want %d", len(one.peers.executed), 4*len(names))
	}
	for id, n := range one.peers.executed {
		if n != 1 {
			t.Errorf("call %s was executed %d times", id, n)
		}
	}
}

// TestAnotherReplicaTakesOverAtOnceWithoutADoubleCall stops the replica that runs a
// turn in the middle of its calls. A replica that waits for the lease's end, or for
// the next poll, would be too late.
func TestAnotherReplicaTakesOverAtOnceWithoutADoubleCall(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	one := start(t, slow, func(c *session.Config) {
		c.DatabaseURL, c.LeaseTTL, c.PollInterval = config.Secret(url), time.Hour, time.Hour
	})
	ctx := t.Context()
	name := one.session(ctx, t)
	turn := one.create(ctx, t, name, "block")
	first := map[string]bool{<-one.peers.blocked: true, <-one.peers.blocked: true}
	two := one.another()
	two.run(t)
	t.Cleanup(func() { two.stop() })
	one.stop()
	for range 2 {
		if id := <-one.peers.blocked; !first[id] { // the test's timeout reports a missing call
			t.Errorf("call %s was asked for after the takeover, and not before", id)
		}
	}
	two.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: name})
	two.waitForEnd(ctx, t, turn.Name)
	if got := order(two.log(ctx, t, name)); len(got) != 1 {
		t.Errorf("the turn ended %d times", len(got))
	}
}

// watch follows a session until a turn has ended.
func (f *fixture) watch(t *testing.T, name string) []*sessionv1.Event {
	var seen []*sessionv1.Event
	f.followUntil(t.Context(), t, name, func(e *sessionv1.Event) bool {
		seen = append(seen, e)
		return e.GetTurnFinished() != nil
	})
	return seen
}
