package placement

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// sandboxes answer, but for those that are down. They are all asked as one, because
// a fake has no addresses: so a test has one node that goes down.
type sandboxes struct {
	mu       sync.Mutex
	down     bool
	name     string
	draining []string
}

func (s *sandboxes) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *sandboxes) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("down")
	}
	return nil
}

func (s *sandboxes) Capabilities(context.Context, string) (*sandboxv1.GetCapabilitiesResponse, error) {
	return &sandboxv1.GetCapabilitiesResponse{Node: s.name}, s.err()
}

func (s *sandboxes) Health(context.Context, string) error { return s.err() }

func (s *sandboxes) Draining(context.Context) ([]string, error) { return s.draining, nil }

func nodes(s *sandboxes, names ...string) *Nodes {
	return New(Config{Names: names, LostAfter: 10 * time.Second, Sandbox: s, Store: s, Log: slog.New(slog.DiscardHandler)})
}

func TestANodeIsLostWhenItHasNotAnsweredForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sandboxes{name: "a"}
		n := nodes(s, "a")
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = n.Run(ctx) })
		defer running.Wait()
		defer stop()
		at := func(d time.Duration, want State) {
			t.Helper()
			time.Sleep(d) //nolint:forbidigo // in a synctest bubble
			synctest.Wait()
			if got := n.State("a"); got != want {
				t.Errorf("the state is %d, want %d", got, want)
			}
		}
		at(5*time.Second, Ready)
		s.set(true)
		at(5*time.Second, Silent)
		if n.Choose(store.Key{Session: "s"}, "") != "a" {
			t.Error("it is given up too early")
		}
		at(10*time.Second, Lost)
		if n.Choose(store.Key{Session: "s"}, "") != "" || n.First(store.Key{}) != "a" {
			t.Error("it is chosen, or the first workspace has none to wait for")
		}
		s.set(false)
		at(5*time.Second, Ready)
	})
}

func TestWhatRunsOnALostNodeIsGivenUpOnceThereIsAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(&sandboxes{}, "a", "b")
		down := errors.New("down")
		lose := func(names ...string) {
			for _, name := range names {
				n.note(t.Context(), name, down)
			}
			time.Sleep(10 * time.Second) //nolint:forbidigo // in a synctest bubble
			for _, name := range names {
				n.note(t.Context(), name, down)
			}
		}
		begin := func() context.Context {
			ctx, end := n.Until(t.Context(), store.Key{Session: "s"}, "a", func() bool { return false })
			t.Cleanup(end)
			return ctx
		}
		goesOn := func(what string, ctx context.Context, want bool) {
			t.Helper()
			synctest.Wait()
			if got := context.Cause(ctx) == nil; got != want || !got && !errors.Is(context.Cause(ctx), ErrLost) {
				t.Errorf("%s: its cause is %v", what, context.Cause(ctx))
			}
		}
		lose("b")
		alone := begin()
		lose("a")
		goesOn("nothing is to be had", alone, true)
		n.note(t.Context(), "a", nil)
		n.note(t.Context(), "b", nil)
		goesOn("the node came back", alone, true)
		fresh := begin()
		lose("a")
		goesOn("what began when there was no other node", alone, false)
		goesOn("what began later", fresh, false)
		goesOn("what begins on a lost node", begin(), false)
		n.note(t.Context(), "a", nil)
		goesOn("what begins when it is back", begin(), true)
		lose("a", "b")
		waits := begin()
		goesOn("all are lost", waits, true)
		n.note(t.Context(), "b", nil)
		goesOn("another one is back", waits, false)
	})
}

func TestANodeThatIsNotConfiguredIsLostAfterTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(&sandboxes{name: "a"}, "a")
		if n.Lost("gone") {
			t.Error("it is lost at once")
		}
		time.Sleep(11 * time.Second) //nolint:forbidigo // in a synctest bubble
		n.look(t.Context())
		if !n.Lost("gone") || n.Known("gone") {
			t.Error("it is not lost")
		}
	})
}

func TestAnotherNodeAtTheAddressIsNotTheOneThatIsMeant(t *testing.T) {
	t.Parallel()
	n := nodes(&sandboxes{name: "b"}, "a")
	n.look(t.Context())
	if got := n.State("a"); got != Silent {
		t.Errorf("the state is %d", got)
	}
}

func TestWorkspacesAreSpreadAndStayWhenAnotherNodeGoes(t *testing.T) {
	t.Parallel()
	const sessions = 3000
	n := nodes(&sandboxes{}, "a", "b", "c")
	count := map[string]int{}
	for i := range sessions {
		k := store.Key{Tenant: "t", Session: fmt.Sprint("s", i)}
		first := n.Choose(k, "")
		count[first]++
		if n.Choose(k, "") != first {
			t.Fatal("the choice is not stable")
		}
		for _, avoid := range []string{"a", "b", "c"} {
			if got := n.Choose(k, avoid); got == avoid || avoid != first && got != first {
				t.Fatalf("without %s it goes from %s to %s", avoid, first, got)
			}
		}
	}
	for name, got := range count {
		if got < sessions/4 || got > sessions/2 {
			t.Errorf("%d of %d on %s", got, sessions, name)
		}
	}
	n.draining = []string{"a", "b"}
	if got := n.Choose(store.Key{}, ""); got != "c" {
		t.Errorf("when others are drained it goes to %s", got)
	}
	if got := n.Choose(store.Key{}, "c"); got != "" {
		t.Errorf("there is nowhere to go, and it goes to %s", got)
	}
}

func TestAWorkspaceThatWasNeverMadeWaitsForNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodes(&sandboxes{}, "a", "b")
		k, down := store.Key{Session: "s"}, errors.New("down")
		var made atomic.Bool
		begin := func() context.Context {
			ctx, end := n.Until(t.Context(), k, "a", func() bool { return !made.Load() })
			t.Cleanup(end)
			return ctx
		}
		wants := func(what, to string, ctx context.Context, over bool) {
			t.Helper()
			synctest.Wait()
			if got := n.Replace(k, "a"); got != to || over != errors.Is(context.Cause(ctx), ErrLost) {
				t.Errorf("%s: the other node is %q, want %q; the cause is %v", what, got, to, context.Cause(ctx))
			}
		}
		first := begin()
		wants("its node answers", "", first, false)
		n.note(t.Context(), "b", down)
		n.note(t.Context(), "a", down)
		wants("no other one answers", "", first, false)
		n.note(t.Context(), "b", nil)
		wants("another one answers", "b", first, true)
		made.Store(true)
		wants("it was made meanwhile", "b", begin(), false)
		n.note(t.Context(), "a", nil)
		wants("its node answers again", "", begin(), false)
	})
}
