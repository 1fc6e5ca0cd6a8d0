package integration

import (
	"context"
	"slices"
	"sync"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// TestTurnsThatStopAnotherRunInTheOrderInWhichTheyCame lets all messages arrive before the worker looks.
func TestTurnsThatStopAnotherRunInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	const (
		queue     = sessionv1.OnActive_ON_ACTIVE_QUEUE
		interrupt = sessionv1.OnActive_ON_ACTIVE_INTERRUPT
		rollback  = sessionv1.OnActive_ON_ACTIVE_ROLLBACK
	)
	for _, tc := range []struct {
		name, say     string
		first, second sessionv1.OnActive
	}{
		{"two that interrupt a turn that runs", "talk", interrupt, interrupt},
		{"two that undo a turn that runs", "talk", rollback, rollback},
		{"one that interrupts and one that undoes", "talk", interrupt, rollback},
		{"one that undoes and one that interrupts a turn that waits", "write", rollback, interrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var db *faulty.Store
			f := startFaulty(t, arrivals, func(s *faulty.Store) { db = s })
			ctx := t.Context()
			s := f.session(ctx, t)
			f.create(ctx, t, s, tc.say)
			f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetTextDelta() != nil || e.GetTurnWaiting() != nil })
			held := db.Hold(faulty.Inbox, 1, faulty.Before)
			queued := f.arrive(ctx, t, s, "queued", queue)
			<-held.Reached
			f.arrive(ctx, t, s, "first", tc.first)
			f.arrive(ctx, t, s, "second", tc.second)
			held.Resume()
			f.waitForEnd(ctx, t, queued.Name)
			if got, want := order(f.log(ctx, t, s)), []string{tc.say, "first", "second", "queued"}; !slices.Equal(got, want) {
				t.Errorf("the turns ended in the order %q, want %q", got, want)
			}
		})
	}
}

// TestATurnThatIsStoppedWhileItsAnswerEndsMakesRoomForWhatStoppedIt lets the messages arrive when the model has said all.
// The watcher of the inbox sees none of them. It runs alone: the watcher must look before the answer ends.
func TestATurnThatIsStoppedWhileItsAnswerEndsMakesRoomForWhatStoppedIt(t *testing.T) {
	for name, on := range map[string]sessionv1.OnActive{
		"interrupt": sessionv1.OnActive_ON_ACTIVE_INTERRUPT, "rollback": sessionv1.OnActive_ON_ACTIVE_ROLLBACK,
	} {
		t.Run(name, func(t *testing.T) {
			var db *faulty.Store
			f := startFaulty(t, arrivals, func(s *faulty.Store) { db = s })
			ctx := t.Context()
			s, turn := f.talk(ctx, t)
			watcher, ending := db.Hold(faulty.Inbox, 1, faulty.Before), db.Hold(faulty.Inbox, 2, faulty.Before)
			queued := f.arrive(ctx, t, s, "queued", sessionv1.OnActive_ON_ACTIVE_QUEUE)
			<-watcher.Reached
			<-ending.Reached
			f.arrive(ctx, t, s, "first", on)
			ending.Resume()
			f.waitForEnd(ctx, t, queued.Name)
			watcher.Resume()
			if got, want := order(f.log(ctx, t, s)), []string{"talk", "first", "queued"}; !slices.Equal(got, want) {
				t.Errorf("the turns ended in the order %q, want %q", got, want)
			}
			if end := f.get(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
				t.Errorf("the turn that was stopped ended %v", end)
			}
		})
	}
}

// ending is a store with a hook before each commit that ends a turn.
type ending struct {
	store.Store
	hook func(*sessionv1.Event)
}

func (h *ending) Commit(ctx context.Context, writes []store.Write) ([]error, error) {
	for _, w := range writes {
		for _, e := range w.Events {
			if e.GetTurnFinished() != nil {
				h.hook(e)
			}
		}
	}
	return h.Store.Commit(ctx, writes)
}

// TestAnInterruptOfAllTurnsStopsTheNextOneAlsoIfTheTurnThatItFoundHasJustEnded lets the interrupt come between the end
// of a turn and the commit of it, so that it names the turn that ends.
func TestAnInterruptOfAllTurnsStopsTheNextOneAlsoIfTheTurnThatItFoundHasJustEnded(t *testing.T) {
	t.Parallel()
	hook := func(*sessionv1.Event) {}
	wrap := func(s store.Store) store.Store {
		return &ending{Store: s, hook: func(e *sessionv1.Event) { hook(e) }}
	}
	f := startOn(t, wrap, arrivals)
	ctx := t.Context()
	s, turn := f.talk(ctx, t)
	next := f.create(ctx, t, s, "block")
	var once sync.Once
	hook = func(e *sessionv1.Event) {
		if e.Turn == turn.Name {
			once.Do(func() { f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s, CancelQueued: true}) })
		}
	}
	if end := f.waitForEnd(ctx, t, next.Name); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
		t.Errorf("the next turn ended %v", end)
	}
	if got := f.states(ctx, t, s); got != "COMPLETE INTERRUPTED" {
		t.Errorf("the turns ended %s", got)
	}
	for _, e := range f.log(ctx, t, s) {
		if e.Turn == next.Name && e.GetStepStarted() != nil {
			t.Error("the next turn began a step")
		}
	}
}
