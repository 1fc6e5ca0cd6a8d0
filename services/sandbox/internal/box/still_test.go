package box

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// freezer is a Runner whose commands run until they are killed, and that notes
// what it is asked to stop.
type freezer struct {
	fake
	fail         error
	froze, thawn int
}

type endless struct {
	ended
	once sync.Once
	end  chan struct{}
}

func (p *endless) Kill()      { p.once.Do(func() { close(p.end) }) }
func (p *endless) Wait() Exit { <-p.end; return Exit{Signal: 9} }

func (p *endless) Ended() <-chan struct{} { return p.end }

func (f *freezer) Start(_ context.Context, c Command) (Process, error) {
	f.starts++
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	none := func() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }
	return &endless{ended: ended{out: none(), err: none()}, end: make(chan struct{})}, nil
}

func (f *freezer) Freeze(context.Context, string) (bool, func(), error) {
	if f.fail != nil {
		return false, nil, f.fail
	}
	f.froze++
	return f.starts > 0, func() { f.thawn++ }, nil
}

// change makes a change in which nothing is written.
func change(t *testing.T, n *Node, id string, do func(*Workspace) error) error {
	t.Helper()
	_, err := n.Mutate(testCall(id), Change{
		Method: "test",
		Do:     func(w *Workspace, _ func([]byte) error) ([]byte, error) { return nil, do(w) },
	})
	return err
}

func TestWhatRunsIsStoppedWhileAWorkspaceIsHeld(t *testing.T) {
	f := &freezer{}
	n := openNode(t, options(t, f))
	ensure(t, n, Key{"t", "s"})
	err := change(t, n, "quiet", func(w *Workspace) error {
		release, err := w.Freeze(t.Context())
		if err != nil || w.Busy() || release() != 0 || f.thawn != 1 {
			t.Errorf("without a command: %v, stopped %d times", err, f.froze)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.Start(t.Context(), testCall("one"), Spec{Argv: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	err = change(t, n, "busy", func(w *Workspace) error {
		release, err := w.Freeze(t.Context())
		if err != nil || !w.Busy() || f.froze != 2 || f.thawn != 1 {
			t.Errorf("with a command: %v, %+v", err, f)
		}
		if w.s.workspace.starts.TryRLock() {
			t.Error("a command may start meanwhile")
		}
		first := release()
		if again := release(); first <= 0 || again != first || f.thawn != 2 {
			t.Errorf("stopped for %v, then %v, let go %d times", first, again, f.thawn)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.fail = errors.New("it does not stop")
	err = change(t, n, "stubborn", func(w *Workspace) error {
		_, err := w.Freeze(t.Context())
		return err
	})
	if !errors.Is(err, f.fail) {
		t.Errorf("got %v", err)
	}
	if _, _, err := n.Start(t.Context(), testCall("three"), Spec{Argv: []string{"x"}}); err != nil {
		t.Errorf("after a hold that failed: %v", err)
	}
}
