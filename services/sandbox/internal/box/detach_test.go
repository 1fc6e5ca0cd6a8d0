package box

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// annsMount is a mount of one user's.
type annsMount struct{ source string }

func (m annsMount) For(_, user string, _ []string) ([]Mount, error) {
	if user != "ann" {
		return nil, nil
	}
	return []Mount{{Name: "m", Source: m.source, Alias: "mine"}}, nil
}

func (annsMount) Environment(string, string) ([]string, error) { return nil, nil }

// detach has a workspace's mounts detached, for a moment.
func detach(w *Workspace) error {
	_, release := w.Shown()
	defer release()
	return w.Detach()
}

// before calls a function before a command starts.
type before func()

func (f before) Started(context.Context, Call, []string) func(Outcome) {
	f()
	return func(Outcome) {}
}

// Somebody has mounts detached between the moment that a task has looked them up and its start.
func TestAMountOfATaskIsKnownToBeShown(t *testing.T) {
	var w *Workspace
	o := options(t, &fake{})
	o.Mounts = annsMount{t.TempDir()}
	o.Observer = before(func() {
		if err := detach(w); err != nil {
			t.Error(err)
		}
	})
	n := openNode(t, o)
	k := Key{"t", "s"}
	ensure(t, n, k)
	var release func()
	var err error
	w, release, err = n.View(k, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c := testCall("a")
	c.User = "ann"
	if _, err := n.RunInside(t.Context(), c, 0, Task{Argv: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	shown, free := w.Shown()
	free()
	if len(shown) == 0 {
		t.Error("its sandbox shows the mount, and nobody knows")
	}
}

// lasting is a runner whose command runs until it is killed.
type lasting struct {
	fake
	command *stuck
	stopped chan struct{}
}

func (l *lasting) Start(context.Context, Command) (Process, error) { return l.command, nil }
func (l *lasting) Stop(string)                                     { l.stopped <- struct{}{} }

// detached runs what the service runs itself in a session, and has mounts detached meanwhile. ended
// is to be called once the command that runs was killed.
func detached(t *testing.T, run func(*Node) error) (l *lasting, detached chan error, ended func()) {
	t.Helper()
	l = &lasting{command: &stuck{over: make(chan struct{})}, stopped: make(chan struct{}, 2)}
	l.command.out, l.command.err = io.NopCloser(strings.NewReader("")), io.NopCloser(strings.NewReader(""))
	n := openNode(t, options(t, l))
	k := Key{"t", "s"}
	ensure(t, n, k)
	w, release, err := n.View(k, 0)
	if err != nil {
		t.Fatal(err)
	}
	ran, detached := make(chan error, 1), make(chan error, 1)
	go func() { ran <- run(n) }()
	synctest.Wait()
	go func() { detached <- detach(w) }()
	synctest.Wait()
	return l, detached, func() {
		if err := <-ran; err != nil {
			t.Error(err)
		}
		release()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

func runInside(n *Node) error {
	_, err := n.RunInside(context.Background(), testCall("a"), 0, Task{Argv: []string{"git"}})
	return err
}

// What the service runs itself, such as Git, is not ended in the midst of what it does.
func TestMountsAreDetachedOnceATaskHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, detached, ended := detached(t, runInside)
		select {
		case <-l.stopped:
			t.Error("its sandbox was ended")
		default:
		}
		l.command.Kill()
		if err := <-detached; err != nil {
			t.Error(err)
		}
		<-l.stopped
		ended()
	})
}

func TestMountsAreNotDetachedWhileATaskLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, detached, ended := detached(t, runInside)
		if err := <-detached; !errors.Is(err, ErrMountsInUse) {
			t.Errorf("%v", err)
		}
		select {
		case <-l.stopped:
			t.Error("its sandbox was ended")
		default:
		}
		l.command.Kill()
		ended()
	})
}

// What runs beside the session's own sandbox shows no mounts, and is not ended with that.
func TestMountsAreDetachedWhileATaskLastsBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, detached, ended := detached(t, func(n *Node) error {
			b, err := n.Beside(context.Background(), testCall("a"), 0, "", false)
			if err != nil {
				return err
			}
			_, err = b.Run(Task{Argv: []string{"git"}})
			b.Close()
			return err
		})
		if err := <-detached; err != nil {
			t.Error(err)
		}
		l.command.Kill()
		ended()
	})
}
