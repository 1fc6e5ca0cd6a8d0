package box

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// taken is a runner on a machine that has no terminal left, until it is free.
type taken struct {
	fake

	asked chan struct{}
	free  chan struct{}
}

func (r *taken) Start(ctx context.Context, c Command) (Process, error) {
	if slices.Equal(c.Argv, []string{"other"}) {
		return r.fake.Start(ctx, c)
	}
	select {
	case <-r.free:
	default:
		if c.Patient {
			r.asked <- struct{}{}
			return nil, ErrTerminalsTaken
		}
		r.unstarted = "there is no terminal"
	}
	return r.fake.Start(ctx, c)
}

// A command that waits for a terminal does not block others.
func TestACommandWaitsForATerminalAlone(t *testing.T) {
	r := &taken{asked: make(chan struct{}), free: make(chan struct{})}
	n := openNode(t, options(t, r))
	ensure(t, n, Key{"t", "s"})
	started := make(chan error, 1)
	go func() {
		_, _, err := n.Start(t.Context(), testCall("one"), Spec{Argv: []string{"one"}})
		started <- err
	}()
	<-r.asked
	if _, _, err := n.Start(t.Context(), testCall("other"), Spec{Argv: []string{"other"}}); err != nil {
		t.Error(err)
	}
	<-r.asked // it tries again
	close(r.free)
	if err := <-started; err != nil {
		t.Error(err)
	}
	n.capacity.wait()
}

func TestACommandWaitsForATerminalForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &taken{asked: make(chan struct{}, 1000)}
		n := openNode(t, options(t, r))
		ensure(t, n, Key{"t", "s"})
		begin := time.Now()
		e, _, err := n.Start(t.Context(), testCall("one"), Spec{Argv: []string{"one"}})
		if err != nil {
			t.Fatal(err)
		}
		<-e.done
		if waited := time.Since(begin); waited != terminalPatience || e.Outcome().Reason != NotStarted {
			t.Errorf("after %v it came to %v", waited, e.Outcome())
		}
		ctx, cancel := context.WithTimeout(t.Context(), terminalPatience/2)
		defer cancel()
		if _, _, err := n.Start(ctx, testCall("two"), Spec{Argv: []string{"two"}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("there is no waiter: %v", err)
		}
		n.capacity.wait()
	})
}
