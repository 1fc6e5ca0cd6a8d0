package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
)

// followers is a Network that remembers whom it follows.
type followers struct {
	mu  sync.Mutex
	log []string
}

func (f *followers) Environment(string) []string { return nil }

func (f *followers) Follow(_ context.Context, s Sandbox, callID string) Followed {
	f.note(fmt.Sprintf("%s by %s, operator %v", callID, s.Network, s.Operator))
	return &follower{f, callID}
}

func (f *followers) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, what)
}

type follower struct {
	of *followers
	id string
}

func (f *follower) Enter(io.Closer) {}
func (f *follower) Uses() []Use     { return []Use{{Host: f.id}} }
func (f *follower) Forget()         { f.of.note(f.id + " is over") }

// What comes by a way out is counted for the commands that were given it, and for nothing else
// that runs in the session.
func TestCommandsWithANetworkAloneAreFollowed(t *testing.T) {
	followed, runner := &followers{}, &fake{}
	o := options(t, runner)
	o.Network = followed
	n := openNode(t, o)
	network := "some"
	if _, err := n.Ensure(testCall("ensure"), Want{Network: &network}, func(*Workspace) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if out := finish(t, n, "a"); len(out.Network) != 1 || out.Network[0].Host != "a" {
		t.Errorf("it did %v", out.Network)
	}
	if _, err := n.RunInside(t.Context(), testCall("inside"), Task{Argv: []string{"git"}}); err != nil {
		t.Error(err)
	}
	for _, way := range []OperatorNetwork{"", "operator's"} {
		b, err := n.NewServiceSandbox(t.Context(), testCall("beside"), way, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Run(Task{Argv: []string{"git"}}); err != nil {
			t.Error(err)
		}
		b.Close()
	}
	runner.err = errors.New("there is no sandbox")
	if _, _, err := n.Start(t.Context(), testCall("b"), Spec{Argv: []string{"x"}}); err == nil {
		t.Error("it started")
	}
	n.capacity.wait()
	want := []string{
		"a by some, operator false", "a is over", "beside by operator's, operator true", "beside is over", "b by some, operator false", "b is over",
	}
	slices.Sort(want)
	slices.Sort(followed.log)
	if !slices.Equal(followed.log, want) {
		t.Errorf("followed are %q, not %q", followed.log, want)
	}
}
