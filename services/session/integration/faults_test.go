package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

const worked = `
turns:
  - when: work
    steps:
      - text: [Looking, " around"]
        tools: [{name: Bash, input: {command: ls}}, {name: Read, input: {file_path: a}}, {name: Read, input: {file_path: b}}]
      - tools: [{name: TodoWrite, input: {todos: [{content: a, status: pending, activeForm: doing a}]}}]
      - text: [Done]
fallback: {steps: [{text: [ok]}]}
`

const workedShape = `user: "work"
assistant: "Looking around", use Bash, use Read, use Read
user: OK, OK, OK
assistant: use TodoWrite
user: OK
assistant: "Done"`

// broken is one run of the turn, with one call of the store that fails.
type broken struct {
	*fixture
	db   *faulty.Store
	what string
}

// TestATurnEndsOnceWhateverCallOfTheStoreFails makes every call of every method
// that the loop uses fail in turn, before its work and after it; `make test` every second one.
func TestATurnEndsOnceWhateverCallOfTheStoreFails(t *testing.T) {
	t.Parallel()
	methods := []faulty.Method{faulty.Claim, faulty.Load, faulty.LoadTurn, faulty.GetAgentRevision, faulty.ListMessages, faulty.Inbox, faulty.Commit, faulty.ReleaseIdle}
	whole := startBroken(t, "nothing fails", func(*faulty.Store) {})
	whole.turn(t.Context(), t, whole.session(t.Context(), t), "work")
	whole.stop()
	var starting sync.Mutex // starting wraps the stores of all that are opened
	var all errgroup.Group
	all.SetLimit(6) // many wait for a lease to end, and few replicas at a time keep theirs
	one := func(what string, fail func(*faulty.Store)) {
		all.Go(func() error {
			starting.Lock()
			b := startBroken(t, what, fail)
			starting.Unlock()
			b.check(t)
			b.stop()
			return nil
		})
	}
	for _, m := range methods {
		calls := whole.db.Calls(m)
		switch {
		case m == faulty.Claim || m == faulty.ReleaseIdle:
			calls = 2 // as often as the turn has time for
		case calls == 0:
			t.Errorf("the turn did not call %s", m)
		}
		if m != faulty.Commit {
			calls = min(calls, 3) // the later ones are made in the same places
		}
		for n := 1; n <= calls; n++ {
			if sampled() && n%2 == 0 {
				continue
			}
			one(fmt.Sprintf("%s %d fails before its work", m, n), func(s *faulty.Store) { s.Fail(m, n, faulty.Before, nil) })
			one(fmt.Sprintf("%s %d fails after its work", m, n), func(s *faulty.Store) { s.Fail(m, n, faulty.After, nil) })
		}
	}
	_ = all.Wait() // what is wrong is reported by check
}

func startBroken(t *testing.T, what string, fail func(*faulty.Store)) *broken {
	t.Helper()
	b := &broken{what: what}
	b.fixture = startFaulty(t, worked, func(s *faulty.Store) { b.db = s }, func(c *session.Config) {
		c.PollInterval = 100 * time.Millisecond
	})
	fail(b.db)
	return b
}

// check runs the turn and reports what is not as it should be.
func (b *broken) check(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.run(ctx); err != nil {
		t.Errorf("%s: %v", b.what, err)
	}
}

func (b *broken) run(ctx context.Context) error {
	created, err := b.CreateSession(ctx, &sessionv1.CreateSessionRequest{})
	if err != nil {
		return err
	}
	name := created.Session.Name
	seen, err := b.follow(ctx, &sessionv1.RunTurnRequest{Parent: name, Text: "work"})
	if err != nil {
		return err
	}
	page, err := b.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: name, PageSize: 1000})
	if err != nil {
		return err
	}
	conversation, err := b.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: name, PageSize: 1000})
	if err != nil {
		return err
	}
	return errors.Join(tiles(page.Events), b.sameTurn(page.Events, seen), b.once(page.Events), isWorked(page.Events, conversation.Messages))
}

// follow runs a turn and returns what its stream showed.
func (b *broken) follow(ctx context.Context, r *sessionv1.RunTurnRequest) ([]*sessionv1.Event, error) {
	stream, err := b.RunTurn(ctx, r)
	if err != nil {
		return nil, err
	}
	var seen []*sessionv1.Event
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return seen, nil
		}
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", names(seen), err)
		}
		if e := resp.GetEvent(); e != nil {
			seen = append(seen, e)
		}
	}
}

func tiles(log []*sessionv1.Event) error {
	next := int64(1)
	for _, e := range log {
		if e.FirstSeq != next || e.Seq < e.FirstSeq {
			return fmt.Errorf("event %s covers %d-%d, want it to begin at %d", sessionv1.EventName(e), e.FirstSeq, e.Seq, next)
		}
		next = e.Seq + 1
	}
	return nil
}

// sameTurn compares what a stream showed with the log.
func (b *broken) sameTurn(log, seen []*sessionv1.Event) error {
	ranges := func(events []*sessionv1.Event) (all []string) {
		for _, e := range events {
			if e.Turn != "" {
				all = append(all, fmt.Sprintf("%s %d-%d", sessionv1.EventName(e), e.FirstSeq, e.Seq))
			}
		}
		return all
	}
	if want, got := ranges(log), ranges(seen); !slices.Equal(got, want) {
		return fmt.Errorf("the stream showed\n%s, but the log is\n%s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

// once checks that nothing was done twice.
func (b *broken) once(log []*sessionv1.Event) error {
	ends, starts := 0, 0
	for _, e := range log {
		if e.GetTurnFinished() != nil {
			ends++
		}
		if e.GetTurnStarted() != nil {
			starts++
		}
	}
	var errs []error
	if ends != 1 || starts != 1 {
		errs = append(errs, fmt.Errorf("the turn started %d times and ended %d times: %s", starts, ends, names(log)))
	}
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	if len(b.peers.executed) != 4 {
		errs = append(errs, fmt.Errorf("%d calls were executed, want 4", len(b.peers.executed)))
	}
	for id, n := range b.peers.executed {
		if n != 1 {
			errs = append(errs, fmt.Errorf("call %s was executed %d times", id, n))
		}
	}
	return errors.Join(errs...)
}

func isWorked(log []*sessionv1.Event, conversation []*sessionv1.Message) error {
	if got := shape(conversation); got != workedShape {
		return fmt.Errorf("the conversation is\n%s", got)
	}
	if got := text(valid(log)); got != "Looking aroundDone" {
		return fmt.Errorf("what is not void says %q", got)
	}
	end := log[len(log)-1].GetTurnFinished()
	if end.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE || end.GetFinalText() != "Done" || end.GetSteps() != 3 {
		return fmt.Errorf("the turn ended %v", end)
	}
	return happens(log, "todo.updated", 1)
}

func TestATurnSurvivesThatTheDatabaseIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	b := startBroken(t, "the database cannot be reached", func(*faulty.Store) {})
	ctx := t.Context()
	name := b.session(ctx, t)
	turn := b.create(ctx, t, name, "work")
	b.db.Down()
	if _, err := b.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: turn.Name}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE) {
		t.Errorf("a read while the database is away: %v", err)
	}
	b.db.Up()
	if end := b.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
	if err := b.once(b.log(ctx, t, name)); err != nil {
		t.Error(err)
	}
}
