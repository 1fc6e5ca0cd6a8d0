package state_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
)

var away = remote.Unavailable("away")

func TestAPeerThatIsAwayIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		errs   []error // nil: an answer
		warned bool
		tries  int
		want   error
	}{
		"it answers":               {[]error{nil}, false, 1, nil},
		"it comes back":            {[]error{away, nil}, false, 2, nil},
		"it comes back late":       {slices.Concat(slices.Repeat([]error{away}, 10), []error{nil}), true, 11, nil},
		"it refuses":               {[]error{remote.Error(status.Error(codes.NotFound, "no"))}, false, 1, status.Error(codes.NotFound, "no")},
		"it stays away":            {slices.Repeat([]error{away}, 1000), true, 0, away},
		"it refuses after a while": {[]error{away, store.ErrNotFound}, false, 2, store.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := turntest.New(t, agent.Spec{})
				begun, tries := time.Now(), 0
				err := f.Patiently(f.WarnAway("The peer is needed"), func() error { tries++; return c.errs[tries-1] })
				if status.Code(err) != status.Code(c.want) || errors.Is(c.want, store.ErrNotFound) != errors.Is(err, store.ErrNotFound) || c.tries > 0 && tries != c.tries {
					t.Errorf("%v after %d tries", err, tries)
				}
				if got := slices.Contains(f.Warnings(), "PEER_AWAY"); got != c.warned || len(f.Warnings()) > 1 {
					t.Errorf("the warnings are %v", f.Warnings())
				}
				if waited := time.Since(begun); waited > f.PeerPatience+10*time.Second {
					t.Errorf("it waited for %v", waited)
				}
			})
		})
	}
}

func TestBetweenTurnsARequesterDoesNotWaitAsLongAsATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := turntest.New(t, agent.Spec{})
		f.PeerPatience = time.Hour
		for sc, least := range map[*state.Scope]time.Duration{new(state.Idle(t.Context(), f.Session)): time.Minute, new(f.InTurn(t.Context())): time.Hour} {
			begun := time.Now()
			_ = sc.Patiently(nil, func() error { return away })
			if waited := time.Since(begun); waited < least || waited > least+time.Minute {
				t.Errorf("it waited for %v, not for %v", waited, least)
			}
		}
	})
}

func TestTheEndOfATurnEndsTheWaitButNotItsRecord(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	sc := f.InTurn(ctx).As("ben")
	if err := sc.Patiently(nil, func() error { return away }); err == nil || !sc.Ended() || sc.WorkerErr() != nil {
		t.Errorf("it waited: %v", err)
	}
	if err := sc.Emit(store.Write{PlaceChange: store.PlaceChange{Made: 1}}); !errors.Is(err, stop) {
		t.Errorf("emitted: %v", err)
	}
	if err := sc.Append(store.Write{PlaceChange: store.PlaceChange{Made: 2}}); err != nil || len(f.Writes()) != 1 {
		t.Errorf("appended: %v", err)
	}
	if sc.Outlasting().Ended() {
		t.Error("the worker's scope has ended with the turn")
	}
	if p, ok := principal.From(sc); !ok || p.User != "ben" || p.Tenant != "acme" {
		t.Errorf("%v acts", p)
	}
}

func TestACutPathDoesNotOverwriteTheUndoneMessages(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	undone := f.Say(sessionv1.Role_ROLE_ASSISTANT, state.TextBlock("undone"))
	whole := f.Path
	var write store.Write
	if got := f.CutPath(&write, 1); len(got) != 1 || got[0] != undone || *write.Head != state.LastSegment(whole[0].Name) {
		t.Errorf("cut off are %v", got)
	}
	f.Say(sessionv1.Role_ROLE_USER, state.TextBlock("instead"))
	if whole[1] != undone || f.Path[1].Parent != whole[0].Name {
		t.Error("the new message took the place of the undone one")
	}
	if f.CutPath(&write, 0); f.Proto.Head != "" || *write.Head != "" || f.Last() != nil {
		t.Errorf("the head is %q", f.Proto.Head)
	}
}

func TestAPlaceIsReplacedOnlyIfItIsStillTheSame(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	a, b := store.Place{Node: "a", Generation: 1}, store.Place{Node: "b", Generation: 2}
	f.SetPlace(a)
	f.ReplacePlace(b, store.Place{Node: "c"})
	if f.Place() != a {
		t.Errorf("the place is %v", f.Place())
	}
	f.ReplacePlace(a, b)
	if ref := f.CallRef("c1"); ref.Node != "b" || ref.WorkspaceGeneration != 2 || ref.Epoch != 3 || ref.Session != "sessions/s" {
		t.Errorf("the call's reference is %v", ref)
	}
}

func TestAnUrgentTurnGoesBeforeTheQueuedOnes(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	for _, c := range []struct {
		id string
		on sessionv1.OnActive
	}{
		{"a", sessionv1.OnActive_ON_ACTIVE_QUEUE}, {"b", sessionv1.OnActive_ON_ACTIVE_INTERRUPT},
		{"c", sessionv1.OnActive_ON_ACTIVE_QUEUE}, {"d", sessionv1.OnActive_ON_ACTIVE_ROLLBACK},
	} {
		f.Active.Enqueue(c.id, c.on)
	}
	if ids, urgent := f.Active.TakeQueue(); !slices.Equal(ids, []string{"b", "d", "a", "c"}) || urgent != 2 || len(f.Active.Run.Queue) != 0 {
		t.Errorf("the queue is %v, %d urgent", ids, urgent)
	}
}

func TestWhatAnOutcomeMeans(t *testing.T) {
	for name, c := range map[string]struct {
		outcome state.Outcome
		goesOn  bool
	}{
		"none": {state.Outcome{}, true}, "stopped": {state.Stopped(), false}, "wait": {state.Outcome{Wait: &state.Wait{}}, false},
		"end": {state.Partial(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MAX_STEPS, "m"), false},
	} {
		if c.outcome.GoesOn() != c.goesOn {
			t.Errorf("%s: the turn goes on: %v", name, c.outcome.GoesOn())
		}
	}
}
