package box

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// coverMount is a cover that everybody has, over a folder of the workspace.
type coverMount struct{ source string }

func (m coverMount) For(string, string, []string) ([]Mount, error) {
	return []Mount{{Name: "mnt", Source: m.source, Alias: "mnt", Cover: true}}, nil
}
func (coverMount) Environment(string, string) ([]string, error) { return nil, nil }
func (coverMount) Private() bool                                { return true }

// lasting is a runner whose command runs until it is killed.
type lasting struct {
	fake
	command *stuck
}

func (l *lasting) Start(context.Context, Command) (Process, error) { return l.command, nil }

// A mount that lies over a folder would move along with it.
func TestNothingIsSetAsideWhileACommandRuns(t *testing.T) {
	l := &lasting{command: &stuck{over: make(chan struct{})}}
	l.command.out, l.command.err = io.NopCloser(strings.NewReader("")), io.NopCloser(strings.NewReader(""))
	o := options(t, l)
	o.Mounts = coverMount{t.TempDir()}
	n := openNode(t, o)
	k := Key{"t", "s"}
	ensure(t, n, k)
	w, release, err := n.View(k, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	put := func() {
		if err := os.WriteFile(filepath.Join(w.Dir, "mnt", "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string) bool {
		if _, err := w.Mounts("ann"); err != nil {
			t.Fatal(err)
		}
		_, err := os.Lstat(filepath.Join(w.Dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	e, _, err := n.Start(t.Context(), testCall("a"), 0, Spec{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	put()
	if there("mnt.aside") {
		t.Error("it was set aside while a command ran")
	}
	l.command.Kill()
	if _, err := e.Follow(t.Context(), Offsets{}, func(Piece) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if !there("mnt.aside/f") || there("mnt/f") {
		t.Error("it was not set aside")
	}
	put()
	if !there("mnt.aside-2/f") || !there("mnt.aside/f") {
		t.Error("it was not set aside beside what is there")
	}
}

// What is about to be moved is read as it is.
func TestNothingIsSetAsideInASealedWorkspace(t *testing.T) {
	o := options(t, &fake{})
	cover := t.TempDir()
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	w, release, err := n.View(Key{"t", "s"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, change := range []error{os.Mkdir(filepath.Join(w.Dir, "mnt"), 0o700), os.WriteFile(filepath.Join(w.Dir, "mnt", "f"), nil, 0o600), n.Seal(t.Context(), testCall("seal"))} {
		if change != nil {
			t.Fatal(change)
		}
	}
	n.o.Mounts = coverMount{cover}
	if all, err := w.Mounts("ann"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if err := os.RemoveAll(filepath.Join(w.Dir, "mnt")); err != nil {
		t.Fatal(err)
	}
	if all, err := w.Mounts("ann"); err != nil || len(all) != 0 {
		t.Errorf("without its place: %v, %v", all, err)
	}
	if left, err := os.ReadDir(w.Dir); err != nil || len(left) != 0 {
		t.Errorf("it has %v, %v", left, err)
	}
}
