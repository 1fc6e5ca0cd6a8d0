package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// A change of KeptMethod, as recovering makes it.
func (r *recovering) keep(n *Node, id string) (string, error) {
	ch := r.change(func() error { return nil })
	ch.Method = KeptMethod
	got, err := n.Mutate(testCall(id), ch)
	return string(got), err
}

func (r *recovering) kept(id string) string {
	return filepath.Join(r.o.Dir, "t", "s", "mutations", KeptMethod, id)
}

// within makes a change of the workspace that needs nothing written down.
func (r *recovering) within(t *testing.T, n *Node, id string, do func(*Workspace) error) {
	t.Helper()
	if _, err := n.Mutate(testCall(id), Change{Method: "restore", Do: func(w *Workspace, _ func([]byte) error) ([]byte, error) {
		return nil, do(w)
	}}); err != nil {
		t.Fatal(err)
	}
}

func voidAll(w *Workspace) error { return w.VoidKept(func(string, []byte) bool { return true }) }

// A change that was taken back and is made again is found out when a crash interrupts that, as the
// first time, though the answer that was taken back still lies there; whatever the clock says.
func TestWhatBecameOfASecondMakingIsFoundOut(t *testing.T) {
	for _, tc := range []struct {
		fate   Fate
		want   string
		err    error
		repeat int // how often it is made in all
	}{
		{Done, "found", nil, 2}, {Undone, "made", nil, 3}, {Unknown, "", ErrOutcomeUnknown, 2},
	} {
		for name, step := range map[string]time.Duration{"": time.Second, ", a clock that goes backwards": -time.Second} {
			t.Run(fmt.Sprint(tc.fate, name), func(t *testing.T) {
				r := newRecovering(t, tc.fate)
				begun, steps := time.Now(), atomic.Int64{}
				r.o.Now = func() time.Time { return begun.Add(time.Duration(steps.Add(1)) * step) }
				n := openNode(t, r.o)
				ensure(t, n, Key{"t", "s"})
				if _, err := r.keep(n, "a"); err != nil {
					t.Fatal(err)
				}
				r.within(t, n, "back", voidAll)
				void, err := os.ReadFile(r.kept("a"))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := r.keep(n, "a"); err != nil || got != "made" || r.done != 2 {
					t.Fatalf("%q, %v, made %d times", got, err, r.done)
				}
				if err := n.Close(); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(r.kept("a"), void, 0o600); err != nil { // the crash was before its answer
					t.Fatal(err)
				}
				n = openNode(t, r.o)
				finish(t, n, "other")
				if len(r.asked) != 1 {
					t.Errorf("asked %+v", r.asked)
				}
				for range 2 {
					if got, err := r.keep(n, "a"); got != tc.want || !errors.Is(err, tc.err) || r.done != tc.repeat {
						t.Errorf("%q, %v, made %d times", got, err, r.done)
					}
					n = r.crash(t, n)
				}
				if len(r.asked) != 1 {
					t.Errorf("asked %d times", len(r.asked))
				}
			})
		}
	}
}

// The first making has its end in the answer that was taken back.
func TestAMakingThatWasTakenBackIsNotFoundOut(t *testing.T) {
	r := newRecovering(t, Unknown)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	for round := range 3 {
		if got, err := r.keep(n, "a"); err != nil || got != "made" || r.done != round+1 {
			t.Fatalf("%q, %v, made %d times", got, err, r.done)
		}
		n = r.crash(t, n)
		r.within(t, n, fmt.Sprint("back", round), voidAll)
		n = r.crash(t, n)
		finish(t, n, fmt.Sprint("other", round))
	}
	// A failed one takes the place of the answer before it, and has its end itself.
	ch := r.change(func() error { return errors.New("it cannot be") })
	ch.Method, ch.Failure = KeptMethod, func(error) []byte { return []byte("no") }
	failed := (*FailedBeforeError)(nil)
	for i := range 2 {
		if _, err := n.Mutate(testCall("a"), ch); err == nil || errors.As(err, &failed) != (i > 0) {
			t.Errorf("%v", err)
		}
		n = r.crash(t, n)
	}
	if len(r.asked) != 0 {
		t.Errorf("asked %+v", r.asked)
	}
}

// An answer that lies in memory for lack of room is as good as one on the disk.
func TestAnAnswerForWhichThereIsNoRoomIsTakenBack(t *testing.T) {
	r := newRecovering(t, Done)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	if err := os.MkdirAll(r.kept("a.new"), 0o700); err != nil { // where it is written first
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := r.keep(n, id); err != nil {
			t.Fatal(err)
		}
	}
	r.within(t, n, "look", func(w *Workspace) error {
		if got, err := w.Kept(); err != nil || fmt.Sprint(got) != "[a b]" {
			t.Errorf("kept %v, %v", got, err)
		}
		if voidAll(w) == nil {
			t.Error("it was taken back without room for that")
		}
		return nil
	})
	if err := os.Remove(r.kept("a.new")); err != nil {
		t.Fatal(err)
	}
	r.within(t, n, "back", func(w *Workspace) error {
		return w.VoidKept(func(call string, answer []byte) bool { return call == "a" && bytes.Equal(answer, []byte("made")) })
	})
	r.within(t, n, "again", func(w *Workspace) error {
		if got, err := w.Kept(); err != nil || len(got) > 1 {
			t.Errorf("kept %v, %v", got, err)
		}
		return nil
	})
	if got, err := r.keep(n, "a"); err != nil || got != "made" || r.done != 3 {
		t.Errorf("%q, %v, made %d times", got, err, r.done)
	}
}
