package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// stopAll returns an interrupt that ends the queued turns too.
func stopAll(t *testing.T, k store.Key) store.Submit {
	t.Helper()
	body, err := proto.Marshal(&sessionv1.InterruptSessionRequest{CancelQueued: true})
	if err != nil {
		t.Fatal(err)
	}
	s := interrupt(k, true)
	s.Command.Body = body
	return s
}

func testArrivals(t *testing.T, open func(t *testing.T) store.Store) {
	interrupting := func(k store.Key, id string) store.Submit { s := newTurn(k, id); s.InterruptActive = true; return s }
	rolling := func(k store.Key, id string) store.Submit { s := newTurn(k, id); s.RollbackActive = true; return s }
	steering := func(k store.Key, id string) store.Submit { s := newTurn(k, id); s.SteerActive = true; return s }
	stop := store.Command{Kind: store.CommandInterrupt, TurnID: "active"}
	undo := store.Command{Kind: store.CommandRollback, TurnID: "active"}
	turn := func(id, target string) store.Command {
		return store.Command{Kind: store.CommandTurn, TurnID: id, Target: target}
	}
	for _, c := range []struct {
		name    string
		submits func(t *testing.T, k store.Key) []store.Submit
		want    []store.Command
	}{
		{"a turn that steers names the active one", func(_ *testing.T, k store.Key) []store.Submit {
			return []store.Submit{steering(k, "a"), steering(k, "b")}
		}, []store.Command{turn("a", "active"), turn("b", "active")}},
		{"a turn that rolls back comes right behind its command", func(_ *testing.T, k store.Key) []store.Submit {
			return []store.Submit{rolling(k, "a"), rolling(k, "b")}
		}, []store.Command{undo, turn("a", ""), turn("b", "")}},
		{"a second interrupt of a turn puts no command", func(_ *testing.T, k store.Key) []store.Submit {
			return []store.Submit{interrupt(k, false), interrupt(k, false), interrupting(k, "a"), interrupt(k, false)}
		}, []store.Command{stop, turn("a", "")}},
		{"a rollback stops a turn, so an interrupt of it puts no command", func(_ *testing.T, k store.Key) []store.Submit {
			return []store.Submit{interrupt(k, false), rolling(k, "a"), interrupt(k, false)}
		}, []store.Command{stop, undo, turn("a", "")}},
		{"an interrupt that ends the queued turns is put again only behind another turn", func(t *testing.T, k store.Key) []store.Submit {
			return []store.Submit{interrupt(k, false), stopAll(t, k), stopAll(t, k), newTurn(k, "a"), stopAll(t, k), stopAll(t, k), interrupt(k, false)}
		}, []store.Command{stop, stop, turn("a", ""), stop}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, open)
			k := f.create(key("s1"))
			f.submitTurn(k, "active")
			l := f.claim(k)
			f.commit(start(l, "active", f.inbox(l)...))
			for _, s := range c.submits(t, k) {
				a, err := f.Submit(f.ctx(), s)
				f.must(err)
				if s.Turn == nil && a.Value != "active" {
					t.Errorf("an interrupt answered %+v", a)
				}
			}
			if d := cmp.Diff(c.want, f.inbox(l), cmpopts.IgnoreFields(store.Command{}, "ID", "Body", "User", "Time")); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("nothing is resumed in an empty session", func(t *testing.T) {
		f := newFixture(t, open)
		s := newTurn(f.create(key("s1")), "t1")
		s.Resume = true
		if _, err := f.Submit(f.ctx(), s); !errors.Is(err, store.ErrNothingToResume) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("only the active turn changes its mode", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		mode := func(turn string) store.Submit {
			return store.Submit{Key: k, Command: store.Command{Kind: store.CommandMode, TurnID: turn}}
		}
		refused := func(turn string) {
			t.Helper()
			if _, err := f.Submit(f.ctx(), mode(turn)); !errors.Is(err, store.ErrTurnNotActive) {
				t.Errorf("the mode of %q: %v", turn, err)
			}
		}
		refused("")
		f.submitTurn(k, "active")
		f.submitTurn(k, "queued")
		l := f.claim(k)
		f.commit(start(l, "active", f.inbox(l)[0]))
		refused("queued")
		for _, turn := range []string{"", "active"} {
			if a, err := f.Submit(f.ctx(), mode(turn)); err != nil || a.Value != "active" {
				t.Errorf("the mode of %q: %+v, %v", turn, a, err)
			}
		}
		if got := f.inbox(l); len(got) != 3 || got[1].TurnID != "active" || got[2].TurnID != "active" {
			t.Errorf("the inbox has %+v", got)
		}
	})
	t.Run("the messages of a new session are one path", func(t *testing.T) {
		f := newFixture(t, open)
		n := newSession(key("s1"))
		n.Messages = []*sessionv1.Message{message(n.Key, "m1", "", "one"), message(n.Key, "m2", "m1", "two")}
		if _, err := f.CreateSession(f.ctx(), n); err != nil {
			t.Fatal(err)
		}
		path, err := f.ListMessages(f.ctx(), n.Key, "", "", 0)
		f.must(err)
		if len(path) != 2 || path[1].Parent != path[0].Name {
			t.Errorf("the path is %v", path)
		}
		bad := newSession(key("s2"))
		bad.Messages = []*sessionv1.Message{message(bad.Key, "m1", "", "one"), message(bad.Key, "m2", "", "two")}
		if _, err := f.CreateSession(f.ctx(), bad); err == nil {
			t.Error("a new session has two roots")
		}
	})
}
