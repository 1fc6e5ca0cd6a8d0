package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// until follows a session until done says so, and returns what it saw.
func (b *broken) until(ctx context.Context, name string, done func(*sessionv1.Event) bool) ([]*sessionv1.Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := b.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: name})
	if err != nil {
		return nil, err
	}
	var seen []*sessionv1.Event
	for {
		resp, err := stream.Recv()
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", names(seen), err)
		}
		if e := resp.GetEvent(); e != nil {
			if seen = append(seen, e); done(e) {
				return seen, nil
			}
		}
	}
}

// arrive sends a message to a turn that waits, lets the turn go on if it steers,
// and returns the log at the end of both turns.
func (b *broken) arrive(ctx context.Context, on sessionv1.OnActive) (log []*sessionv1.Event, first, second string, _ error) {
	created, err := b.CreateSession(ctx, &sessionv1.CreateSessionRequest{})
	if err != nil {
		return nil, "", "", err
	}
	name := created.Session.Name
	one, err := b.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: name, Text: "write"})
	if err != nil {
		return nil, "", "", err
	}
	var asked *sessionv1.ApprovalRequested
	if _, err := b.until(ctx, name, func(e *sessionv1.Event) bool {
		if e.GetApprovalRequested() != nil {
			asked = e.GetApprovalRequested()
		}
		return e.GetTurnWaiting() != nil
	}); err != nil {
		return nil, "", "", err
	}
	two, err := b.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: name, Text: "why?", OnActive: on})
	if err != nil {
		return nil, "", "", err
	}
	if on == sessionv1.OnActive_ON_ACTIVE_STEER {
		if _, err := b.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: name, CallId: asked.CallId, Digest: asked.Digest, Approved: true}); err != nil {
			return nil, "", "", err
		}
	}
	log, err = b.until(ctx, name, func(e *sessionv1.Event) bool { return e.Turn == two.Turn.Name && e.GetTurnFinished() != nil })
	return log, one.Turn.Name, two.Turn.Name, err
}

// endsOf tells how often a turn ended, and how at last.
func endsOf(log []*sessionv1.Event, turn string) (n int, last *sessionv1.TurnFinished) {
	for _, e := range log {
		if e.Turn == turn && e.GetTurnFinished() != nil {
			n, last = n+1, e.GetTurnFinished()
		}
	}
	return n, last
}

// checkArrival checks that both turns ended once and as they should, and that what
// counts is what the conversation says.
func (b *broken) checkArrival(ctx context.Context, on sessionv1.OnActive) error {
	log, first, second, err := b.arrive(ctx, on)
	if err != nil {
		return err
	}
	var errs []error
	errs = append(errs, tiles(log))
	n, one := endsOf(log, first)
	m, two := endsOf(log, second)
	if n != 1 || m != 1 || two.FinalText != "because" || two.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		errs = append(errs, fmt.Errorf("the turns ended %d and %d times, the second as %v", n, m, two))
	}
	moves := 0
	for _, e := range log {
		if e.GetTurnSteered() != nil || e.GetSessionRewound() != nil {
			moves++
		}
	}
	want := "because"
	if on == sessionv1.OnActive_ON_ACTIVE_ROLLBACK && one.GetError().GetReason() != "ROLLED_BACK" || moves != 1 || text(valid(log)) != want {
		errs = append(errs, fmt.Errorf("the first turn ended %v, there are %d moves, and what counts says %q", one, moves, text(valid(log))))
	}
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	for id, n := range b.peers.executed {
		if n != 1 {
			errs = append(errs, fmt.Errorf("call %s was executed %d times", id, n))
		}
	}
	return errors.Join(errs...)
}

// TestWhatArrivesTakesEffectOnceWhateverCallOfTheStoreFails makes each commit
// fail in turn, and the first reads of the inbox and of turns, before the work and
// after it, while a message steers a turn or rolls it back.
func TestWhatArrivesTakesEffectOnceWhateverCallOfTheStoreFails(t *testing.T) {
	t.Parallel()
	var starting sync.Mutex
	begin := func(what string, fail func(*faulty.Store)) *broken {
		starting.Lock()
		defer starting.Unlock()
		b := &broken{what: what}
		b.fixture = startFaulty(t, arrivals, func(s *faulty.Store) { b.db = s }, func(c *session.Config) { c.PollInterval = 100 * time.Millisecond })
		fail(b.db)
		return b
	}
	var all errgroup.Group
	all.SetLimit(6)
	points := 0
	for _, on := range []sessionv1.OnActive{sessionv1.OnActive_ON_ACTIVE_STEER, sessionv1.OnActive_ON_ACTIVE_ROLLBACK} {
		run := func(what string, fail func(*faulty.Store)) *broken {
			b := begin(what, fail)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := b.checkArrival(ctx, on); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			b.stop()
			return b
		}
		whole := run(fmt.Sprintf("%v, and nothing fails", on), func(*faulty.Store) {})
		for _, m := range []faulty.Method{faulty.Commit, faulty.Inbox, faulty.LoadTurn} {
			calls := whole.db.Calls(m)
			if m != faulty.Commit {
				calls = min(calls, 4)
			}
			for n := 1; n <= calls; n++ {
				for place, when := range map[string]faulty.When{"before": faulty.Before, "after": faulty.After} {
					if points++; sampled() && points%40 != 0 {
						continue // `make prove` takes them all
					}
					all.Go(func() error {
						run(fmt.Sprintf("%v: %s %d fails %s its work", on, m, n, place), func(s *faulty.Store) { s.Fail(m, n, when, nil) })
						return nil
					})
				}
			}
		}
	}
	_ = all.Wait() // what is wrong is reported by run
}
