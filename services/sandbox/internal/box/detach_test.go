package box

import (
	"context"
	"testing"
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
		done, err := w.Detach()
		if err != nil {
			t.Error(err)
			return
		}
		done()
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
	if len(w.Shown()) == 0 {
		t.Error("its sandbox shows the mount, and nobody knows")
	}
}
