package integration

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const twoSteps = `
turns:
  - when: work
    steps: [{text: [Wait], tools: [{name: Block, input: {}}]}, {text: [Done]}]
  - when: slow
    steps: [{text: [one, " two"], repeat: 50, delay: 20ms}, {text: [Done]}]
fallback: {steps: [{text: [ok]}]}
`

// TestADrainLetsTheRunningStepEndAndHandsTheTurnOver stops a service in the
// middle of a step, as an operator does, and goes on with another.
func TestADrainLetsTheRunningStepEndAndHandsTheTurnOver(t *testing.T) {
	t.Parallel()
	f := start(t, twoSteps)
	ctx := t.Context()
	name := f.session(ctx, t)
	turn := f.create(ctx, t, name, "work")
	call := <-f.peers.blocked
	drained := make(chan struct{})
	go func() { defer close(drained); f.drain(ctx) }()
	if got := f.states(ctx, t, name); got != "RUNNING" {
		t.Errorf("while the step ends the turn is %s", got)
	}
	f.peers.release(call)
	<-drained
	log := f.log(ctx, t, name)
	if last := sessionv1.EventName(log[len(log)-1]); last != "step.finished" {
		t.Errorf("the drain ended after %s", names(log))
	}
	f.restart(t)
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.Steps != 2 {
		t.Errorf("the turn ended %v", end)
	}
	if log := f.log(ctx, t, name); count(log, "step.restarted") != 0 {
		t.Errorf("a step was restarted: %s", names(log))
	}
}

// TestADrainBreaksAStepOffWhenItsTimeIsUp gives a step no time to end.
func TestADrainBreaksAStepOffWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	f := start(t, twoSteps)
	ctx := t.Context()
	name := f.session(ctx, t)
	turn := f.create(ctx, t, name, "slow")
	f.waitForDelta(t, name)
	now, cancel := context.WithCancel(ctx)
	cancel()
	f.drain(now)
	f.restart(t)
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
	if log := f.log(ctx, t, name); count(log, "step.restarted") != 1 || text(valid(log)) == "" {
		t.Errorf("want one restarted step: %s", names(log))
	}
}

// together is a store that gives the first lease back when the second is to be
// given back too.
type together struct {
	store.Store
	arrived atomic.Int32
	both    chan struct{}
}

func (s *together) Release(ctx context.Context, l store.Lease) error {
	if s.arrived.Add(1) == 2 {
		close(s.both)
	}
	select {
	case <-s.both:
		return s.Store.Release(ctx, l)
	case <-ctx.Done():
		return errors.New("no other lease was given back at the same time")
	}
}

// TestADrainWhoseTimeIsUpBreaksAllStepsOffAtOnce: one after the other would take
// too long where many sessions are held.
func TestADrainWhoseTimeIsUpBreaksAllStepsOffAtOnce(t *testing.T) {
	t.Parallel()
	db := &together{both: make(chan struct{})}
	wrap := func(s store.Store) store.Store {
		db.Store = s
		return db
	}
	f := startOn(t, wrap, twoSteps, func(c *session.Config) { c.LeaseTTL = time.Minute })
	ctx := t.Context()
	for range 2 {
		name := f.session(ctx, t)
		f.create(ctx, t, name, "slow")
		f.waitForDelta(t, name)
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	begun := time.Now()
	f.drain(now)
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("the drain took %v", took)
	}
}

// release lets a Block call end well.
func (p *peers) release(call string) {
	p.finish(call, toolsv1.CallOutcome_CALL_OUTCOME_OK, "released")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels[call]()
}

func count(log []*sessionv1.Event, name string) (n int) {
	for _, e := range log {
		if sessionv1.EventName(e) == name {
			n++
		}
	}
	return n
}

// waitForDelta follows a session until the model has begun to speak.
func (f *fixture) waitForDelta(t *testing.T, session string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: session})
	for err == nil {
		var r *sessionv1.StreamEventsResponse
		if r, err = stream.Recv(); r.GetEvent().GetTextDelta() != nil {
			return
		}
	}
	t.Fatal(err)
}
