package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// recovering is a node whose changes are interrupted: what it is asked to find out, and
// what it answers.
type recovering struct {
	o     Options
	fate  Fate
	asked []Interrupted
	done  int // how often the change was made
}

func newRecovering(t *testing.T, fate Fate) *recovering {
	r := &recovering{o: options(t, &fake{}), fate: fate}
	r.o.Upkeep.Recover = func(_ *Workspace, i Interrupted) ([]byte, Fate) {
		r.asked = append(r.asked, i)
		return []byte("found"), r.fate
	}
	return r
}

// change is one that says what it is about to do, and then does something else.
func (r *recovering) change(then func() error) Change {
	return Change{Method: "m", Request: []byte("r"), Do: func(_ *Workspace, intend func([]byte) error) ([]byte, error) {
		r.done++
		return []byte("made"), errors.Join(intend([]byte("intent")), then())
	}}
}

func (r *recovering) mutate(n *Node, id string) (string, error) {
	got, err := n.Mutate(testCall(id), r.change(func() error { return nil }))
	return string(got), err
}

func (r *recovering) place(id string) string {
	return filepath.Join(r.o.Dir, "t", "s", "mutations", "m", id)
}

// crash leaves what a service leaves that dies before the answers are written.
func (r *recovering) crash(t *testing.T, n *Node, ids ...string) *Node {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := os.Remove(r.place(id)); err != nil {
			t.Fatal(err)
		}
	}
	return openNode(t, r.o)
}

func TestWhatBecameOfAChangeIsFoundOutBeforeAnythingElse(t *testing.T) {
	for _, tc := range []struct {
		fate   Fate
		want   string
		err    error
		repeat int // how often it is made in all
	}{
		{Done, "found", nil, 1}, {Undone, "made", nil, 2}, {Unknown, "", ErrOutcomeUnknown, 1},
	} {
		t.Run(fmt.Sprint(tc.fate), func(t *testing.T) {
			r := newRecovering(t, tc.fate)
			n := openNode(t, r.o)
			ensure(t, n, Key{"t", "s"})
			if _, err := r.mutate(n, "a"); err != nil {
				t.Fatal(err)
			}
			n = r.crash(t, n, "a")
			if len(r.asked) != 0 {
				t.Error("it was asked before the workspace was used")
			}
			finish(t, n, "other") // the command that might change the same
			if len(r.asked) != 1 || string(r.asked[0].Intent) != "intent" || r.asked[0].ID != "a" || r.asked[0].Method != "m" || !r.asked[0].SameBoot || !r.asked[0].Last {
				t.Fatalf("asked %+v", r.asked)
			}
			for range 2 {
				if got, err := r.mutate(n, "a"); got != tc.want || !errors.Is(err, tc.err) || r.done != tc.repeat {
					t.Errorf("%q, %v, made %d times", got, err, r.done)
				}
				if err := n.Close(); err != nil {
					t.Fatal(err)
				}
				n = openNode(t, r.o)
			}
			if len(r.asked) != 1 {
				t.Errorf("asked %d times", len(r.asked))
			}
		})
	}
}

func TestWhatHasAnEndIsNotFoundOut(t *testing.T) {
	r := newRecovering(t, Done)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	if _, err := r.mutate(n, "answered"); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no rename")
	if _, err := n.Mutate(testCall("failed"), r.change(func() error { return failed })); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	n = r.crash(t, n)
	if got, err := r.mutate(n, "failed"); err != nil || got != "made" || len(r.asked) != 0 {
		t.Errorf("%q, %v, asked %+v", got, err, r.asked)
	}
	// That of a workspace that was deleted has nothing to do with a new one.
	if _, err := r.mutate(n, "old"); err != nil {
		t.Fatal(err)
	}
	if err := n.Delete(Key{"t", "s"}, 0); err != nil {
		t.Fatal(err)
	}
	ensure(t, n, Key{"t", "s"})
	n = r.crash(t, n)
	if got, err := r.mutate(n, "old"); err != nil || got != "made" || len(r.asked) != 0 {
		t.Errorf("%q, %v, asked %+v", got, err, r.asked)
	}
}

func TestAfterACrashOfTheMachineLessIsSure(t *testing.T) {
	r := newRecovering(t, Undone)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	for _, id := range []string{"lost", "torn", "last"} {
		if _, err := r.mutate(n, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(r.place("torn"), 0); err != nil {
		t.Fatal(err)
	}
	n = r.crash(t, n, "lost", "last")
	n.boot = "another"
	if got, err := r.mutate(n, "torn"); err != nil || got != "made" {
		t.Errorf("%q, %v", got, err)
	}
	var seen []string
	for _, i := range r.asked {
		seen = append(seen, fmt.Sprint(i.ID, i.SameBoot, i.Last))
	}
	if want := "[lostfalse false tornfalse false lastfalse true]"; fmt.Sprint(seen) != want {
		t.Errorf("asked %v, want %s", seen, want)
	}
}

// A change begins with what is written down of it: what began before that, while it waited for
// the workspace to stand still, has not begun since.
func TestACommandThatBeganBeforeAChangeIsNoLaterOne(t *testing.T) {
	r := newRecovering(t, Done)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	ch := r.change(func() error { return nil })
	do := ch.Do
	ch.Do = func(w *Workspace, intend func([]byte) error) ([]byte, error) {
		finish(t, n, "other")
		return do(w, intend)
	}
	if _, err := n.Mutate(testCall("a"), ch); err != nil {
		t.Fatal(err)
	}
	n = r.crash(t, n, "a")
	if got, err := r.mutate(n, "a"); err != nil || got != "found" || len(r.asked) != 1 || !r.asked[0].Last {
		t.Errorf("%q, %v, asked %+v", got, err, r.asked)
	}
}

func TestTheJournalKeepsAChangeThatTakesLong(t *testing.T) {
	r := newRecovering(t, Done)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	_, err := n.Mutate(testCall("a"), r.change(func() error {
		for range 2 { // both files are written anew
			n.journal.mu.Lock()
			err := n.journal.switchFile()
			n.journal.mu.Unlock()
			if err = errors.Join(err, <-n.journal.spare); err != nil {
				return err
			}
			n.journal.spare <- nil // it has ended
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if n.journal.mu.Lock(); len(n.journal.intents) != 0 {
		t.Error("the journal holds a change that has its answer")
	}
	n.journal.mu.Unlock()
	n = r.crash(t, n, "a")
	if got, err := r.mutate(n, "a"); err != nil || got != "found" || len(r.asked) != 1 {
		t.Errorf("%q, %v, asked %+v", got, err, r.asked)
	}
}

func TestAnAnswerForWhichThereIsNoRoomIsKept(t *testing.T) {
	r := newRecovering(t, Done)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	if err := os.MkdirAll(r.place("a.new"), 0o700); err != nil { // where it is written first
		t.Fatal(err)
	}
	for range 2 {
		if got, err := r.mutate(n, "a"); err != nil || got != "made" || r.done != 1 {
			t.Errorf("%q, %v, made %d times", got, err, r.done)
		}
	}
	// It is of this workspace alone.
	if err := n.Delete(Key{"t", "s"}, 0); err != nil {
		t.Fatal(err)
	}
	ensure(t, n, Key{"t", "s"})
	if err := os.MkdirAll(r.place("a.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := r.mutate(n, "a"); err != nil || got != "made" || r.done != 2 {
		t.Errorf("%q, %v, made %d times", got, err, r.done)
	}
	if err := os.Remove(r.place("a.new")); err != nil {
		t.Fatal(err)
	}
	r.done = 1
	if got, err := r.mutate(n, "a"); err != nil || got != "made" || r.done != 1 {
		t.Errorf("%q, %v, made %d times", got, err, r.done)
	}
	n = r.crash(t, n)
	if got, err := r.mutate(n, "a"); err != nil || got != "made" || r.done != 1 || len(r.asked) != 0 {
		t.Errorf("%q, %v, made %d times, asked %v", got, err, r.done, r.asked)
	}
}

// Each of them is written into the journal again and again until its answer is on the disk.
func TestAnAnswerForWhichThereWasNoRoomIsWrittenWhenThereIs(t *testing.T) {
	r := newRecovering(t, Done)
	now := time.Now()
	r.o.Now = func() time.Time { return now }
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	if err := os.MkdirAll(r.place("a.new"), 0o700); err != nil { // where it is written first
		t.Fatal(err)
	}
	if got, err := r.mutate(n, "a"); err != nil || got != "made" {
		t.Fatalf("%q, %v", got, err)
	}
	now = now.Add(time.Hour) // the session is unused
	n.tidy()
	if len(n.journal.intents) != 1 || len(n.sessions.open) != 1 {
		t.Fatalf("%d answers are kept, %d sessions are known", len(n.journal.intents), len(n.sessions.open))
	}
	if err := os.Remove(r.place("a.new")); err != nil {
		t.Fatal(err)
	}
	s, leave, err := n.sessions.enter(Key{"t", "s"})
	if err != nil {
		t.Fatal(err)
	}
	s.mutations.mu.Lock() // a change that is under way is not waited for
	n.tidy()
	s.mutations.mu.Unlock()
	leave()
	n.tidy()
	if len(n.journal.intents) != 0 {
		t.Error("the journal still keeps it")
	}
	n = r.crash(t, n)
	if got, err := r.mutate(n, "a"); err != nil || got != "made" || r.done != 1 || len(r.asked) != 0 {
		t.Errorf("%q, %v, made %d times, asked %v", got, err, r.done, r.asked)
	}
}

func TestAChangeThatBrokeOffIsNotMadeAgain(t *testing.T) {
	r := newRecovering(t, Done)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	func() {
		defer func() { _ = recover() }()
		_, _ = n.Mutate(testCall("a"), r.change(func() error { panic("a fault of ours") }))
	}()
	if _, err := r.mutate(n, "a"); !errors.Is(err, ErrOutcomeUnknown) || r.done != 1 {
		t.Errorf("%v, made %d times", err, r.done)
	}
	// An older version wrote down what it was about to do where the answer is to be.
	if err := errors.Join(os.MkdirAll(filepath.Dir(r.place("b")), 0o700), note(r.place("b"), answer{Digest: Change{Request: []byte("r")}.digest()})); err != nil {
		t.Fatal(err)
	}
	if _, err := r.mutate(n, "b"); !errors.Is(err, ErrOutcomeUnknown) || r.done != 1 {
		t.Errorf("%v, made %d times", err, r.done)
	}
	if _, err := n.Mutate(testCall("b"), Change{Method: "m", Request: []byte("another")}); !errors.Is(err, ErrCallIDReused) {
		t.Errorf("%v", err)
	}
}
