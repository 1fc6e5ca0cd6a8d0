package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const patience = 20 * time.Second

// listen listens until the test ends.
func (f *fixture) listen() <-chan store.Wake {
	f.Helper()
	c, err := f.Listen(f.ctx())
	f.must(err)
	return c
}

// awaitWake waits for a wake, and skips others.
func (f *fixture) awaitWake(c <-chan store.Wake, want store.Wake) {
	f.Helper()
	timeout := time.After(patience)
	for {
		select {
		case got, ok := <-c:
			if !ok {
				f.Fatal("the channel was closed")
			}
			if got == want {
				return
			}
		case <-timeout:
			f.Fatalf("no wake %+v", want)
		}
	}
}

func testWakes(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("every listener hears what happens", func(t *testing.T) {
		f := newFixture(t, open)
		one, two := f.listen(), f.listen()
		k := f.create(key("s1"))
		inbox, events := store.Wake{Key: k, Kind: store.WakeInbox}, store.Wake{Key: k, Kind: store.WakeEvents}
		for _, c := range []<-chan store.Wake{one, two} {
			f.awaitWake(c, events)
		}
		f.submitTurn(k, "t1")
		for _, c := range []<-chan store.Wake{one, two} {
			f.awaitWake(c, inbox)
		}
		l := f.claim(k)
		w := start(l, "t1", f.inbox(l)...)
		w.LastSeq, w.Events = 1, []*sessionv1.Event{delta(2, 2, "x")}
		f.commit(w)
		for _, c := range []<-chan store.Wake{one, two} {
			f.awaitWake(c, events)
		}
		f.must(f.Release(f.ctx(), l))
		for _, c := range []<-chan store.Wake{one, two} {
			f.awaitWake(c, inbox)
		}
	})

	t.Run("every listener hears of a change that no log has", func(t *testing.T) {
		f := newFixture(t, open)
		one, two := f.listen(), f.listen()
		k := f.create(key("s1"))
		for _, undo := range []bool{false, true} {
			if _, err := f.ArchiveSession(f.ctx(), store.ArchiveSession{Key: k, Undo: undo}); err != nil {
				t.Fatal(err)
			}
			for _, c := range []<-chan store.Wake{one, two} {
				f.awaitWake(c, store.Wake{Key: k, Kind: store.WakeSession})
			}
		}
	})

	t.Run("a commit of many sessions wakes all their followers", func(t *testing.T) {
		f := newFixture(t, open)
		const sessions = 170 // more than one notification can name
		var writes []store.Write
		for range sessions {
			l := f.held(f.nextID("a-session-with-quite-a-long-name-"), "t")
			writes = append(writes, store.Write{Lease: l, LastSeq: 1, Events: []*sessionv1.Event{delta(2, 2, "x")}})
		}
		c := f.listen()
		errs, err := f.Commit(f.ctx(), writes)
		f.must(errors.Join(append(errs, err)...))
		woken := map[store.Key]bool{}
		timeout := time.After(patience)
		for len(woken) < sessions {
			select {
			case w := <-c:
				if w.Kind == store.WakeLost {
					return // look at everything: covers all of them
				}
				woken[w.Key] = true
			case <-timeout:
				t.Fatalf("only %d were woken", len(woken))
			}
		}
	})

	t.Run("a slow listener loses nothing without being told", func(t *testing.T) {
		f := newFixture(t, open)
		slow, quick := f.listen(), f.listen()
		const sessions = 40
		done := make(chan struct{})
		go func() {
			defer close(done)
			for w := range quick {
				if w.Session == "last" {
					return
				}
			}
		}()
		for i := range sessions {
			f.create(key(fmt.Sprintf("s%d", i)))
		}
		f.create(key("last"))
		<-done
		// The wakes that it did not take wait for it, without duplicates, or it is
		// told that wakes were lost.
		woken := map[store.Key]bool{}
		timeout := time.After(patience)
		for len(woken) < sessions+1 {
			select {
			case w := <-slow:
				if w.Kind == store.WakeLost {
					return
				}
				if woken[w.Key] {
					t.Errorf("woken twice for %v", w.Key)
				}
				woken[w.Key] = true
			case <-timeout:
				t.Fatalf("only %d were woken and no loss was told", len(woken))
			}
		}
	})

	t.Run("a listener that goes gets a closed channel", func(t *testing.T) {
		f := newFixture(t, open)
		ctx, cancel := context.WithCancel(f.ctx())
		c, err := f.Listen(ctx)
		f.must(err)
		f.create(key("s1"))
		cancel()
		drain(t, c)
		f.create(key("s2"))
	})

	t.Run("closing the store closes the channels of its listeners", func(t *testing.T) {
		f := newFixture(t, open)
		a, b := f.listen(), f.listen()
		f.create(key("s1"))
		f.must(f.Close())
		drain(t, a)
		drain(t, b)
		if _, err := f.Listen(f.ctx()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("listen afterwards: %v", err)
		}
		if _, err := f.GetSession(f.ctx(), key("s1")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("get afterwards: %v", err)
		}
		if _, err := f.CreateSession(f.ctx(), newSession(key("s2"))); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("create afterwards: %v", err)
		}
		if err := f.Ping(f.ctx()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("ping afterwards: %v", err)
		}
	})

	t.Run("an open store answers a ping", func(t *testing.T) {
		f := newFixture(t, open)
		f.must(f.Ping(f.ctx()))
	})
}

// drain waits until a channel is closed.
func drain(t *testing.T, c <-chan store.Wake) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case _, ok := <-c:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatal("the channel stays open")
		}
	}
}
