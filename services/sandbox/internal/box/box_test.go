package box

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fake is a Runner whose commands end at once, with the status that their argument
// says, or fail to start with err.
type fake struct {
	err       error
	unstarted string
	crowded   bool
	starts    int
}

func (f *fake) Start(_ context.Context, c Command) (Process, error) {
	f.starts++
	if err := cmp.Or(f.err, c.Prepare()); err != nil {
		return nil, err
	}
	return &ended{exit: Exit{Status: 5, NotStarted: f.unstarted, Crowded: f.crowded}, out: io.NopCloser(strings.NewReader("out")), err: io.NopCloser(strings.NewReader("err"))}, nil
}

func (f *fake) Warm(context.Context, Sandbox) error { return nil }
func (f *fake) Move(string, Sandbox)                {}
func (f *fake) Stop(string)                         {}
func (f *fake) Freeze(context.Context, string) (bool, func(), error) {
	return false, func() {}, nil
}

type ended struct {
	exit     Exit
	out, err io.ReadCloser
}

func (p *ended) Stdin() io.WriteCloser     { return nil }
func (p *ended) Stdout() io.ReadCloser     { return p.out }
func (p *ended) Stderr() io.ReadCloser     { return p.err }
func (p *ended) Signal(int) error          { return nil }
func (p *ended) Resize(TerminalSize) error { return ErrNoTerminal }
func (p *ended) Terminals() int            { return 0 }
func (p *ended) Written() int64            { return 0 }
func (p *ended) Kill()                     {}
func (p *ended) Wait() Exit                { return p.exit }
func (p *ended) Ended() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

type unobserved struct{}

func (unobserved) Started(context.Context, Call, []string) func(Outcome) { return func(Outcome) {} }

func options(t *testing.T, r Runner) Options {
	return Options{
		Dir: filepath.Join(t.TempDir(), "data"), Runner: r, Owners: Owners{Base: -1},
		Limits: Limits{
			MemoryBytes: 1, Processes: 1, OutputBytes: 100, FloodBytes: 1000, WorkspaceBytes: 1 << 20, WorkspaceInodes: 100, FileBytes: 1 << 20,
			Timeout: time.Minute, MaxTimeout: time.Minute,
		},
		MaxExecs: 10, MaxSessionExecs: 10, Keep: Retention{Finished: 2, For: time.Hour}, Observer: unobserved{},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func openNode(t *testing.T, o Options) *Node {
	t.Helper()
	n, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func testCall(id string) Call { return Call{Key: Key{"t", "s"}, Epoch: 1, ID: id} }

func ensure(t *testing.T, n *Node, k Key) {
	t.Helper()
	if _, err := n.Ensure(Call{Key: k, Epoch: 1, ID: "ensure"}, Want{}, func(*Workspace) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func finish(t *testing.T, n *Node, id string) Outcome {
	t.Helper()
	e, _, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := e.Follow(t.Context(), Offsets{}, func(Piece) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	<-e.done
	return o
}

func TestAnIsolationThatFailsLeavesNoTrace(t *testing.T) {
	f := &fake{err: errors.New("no group")}
	n := openNode(t, options(t, f))
	ensure(t, n, Key{"t", "s"})
	if _, _, err := n.Start(t.Context(), testCall("a"), Spec{Argv: []string{"x"}}); !errors.Is(err, ErrIsolation) || !strings.Contains(err.Error(), "no group") {
		t.Fatalf("%v", err)
	}
	f.err = nil
	if o := finish(t, n, "a"); o.Reason != Exited || o.ExitCode != 5 || f.starts != 2 {
		t.Errorf("%+v after %d starts", o, f.starts)
	}
	f.unstarted = "too long"
	if o := finish(t, n, "b"); o.Reason != NotStarted || o.Message != "too long" || len(o.Hits) > 0 {
		t.Errorf("%+v", o)
	}
	f.unstarted, f.crowded = "too many", true
	if o := finish(t, n, "c"); o.Reason != NotStarted || o.Message != "too many" || !slices.Equal(o.Hits, []Hit{{hitProcesses, "too many"}}) {
		t.Errorf("%+v", o)
	}
}

func TestACommandStartsOnce(t *testing.T) {
	f := &fake{}
	o := options(t, f)
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	for range 3 {
		finish(t, n, "a")
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	draft := filepath.Join(o.Dir, "t", "s", "staging", "draft-left-by-a-crash")
	if err := os.WriteFile(draft, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, o)
	finish(t, n, "a")
	if _, err := os.Stat(draft); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a crash left in the staging folder is still there: %v", err)
	}
	if f.starts != 1 {
		t.Errorf("it started %d times", f.starts)
	}
}

func TestAnAcknowledgedCommandIsNotStartedAgain(t *testing.T) {
	f := &fake{}
	o := options(t, f)
	now := time.Now()
	o.Now = func() time.Time { return now }
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	finish(t, n, "a")
	if err := n.Acknowledge(testCall("a")); err != nil {
		t.Fatal(err)
	}
	late := func(when string) {
		t.Helper()
		if _, _, err := n.Start(t.Context(), testCall("a"), Spec{Argv: []string{"x"}}); !errors.Is(err, ErrAcknowledged) {
			t.Errorf("%s: a late start: %v", when, err)
		}
		if _, err := n.Find(testCall("a")); !errors.Is(err, ErrAcknowledged) {
			t.Errorf("%s: a late attachment: %v", when, err)
		}
	}
	late("at once")
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, o)
	late("after a restart")
	now = now.Add(o.Keep.For / 2)
	finish(t, n, "b")
	if err := n.Acknowledge(testCall("b")); err != nil {
		t.Fatal(err)
	}
	n.tidy()
	late("after half its time")
	now = now.Add(o.Keep.For/2 + 2*time.Second)
	_, leave, err := n.sessions.enter(Key{"t", "s"})
	if err != nil {
		t.Fatal(err)
	}
	n.tidy()
	leave()
	if raw, err := os.ReadFile(filepath.Join(o.Dir, "t", "s", settledFile)); err != nil || strings.Contains(string(raw), " a\n") || !strings.Contains(string(raw), " b\n") {
		t.Errorf("after its time the file holds %q, %v", raw, err)
	}
	if f.starts != 2 {
		t.Errorf("commands were started %d times", f.starts)
	}
}

func TestAFailureOfAChangeIsItsAnswer(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	done, passing := 0, errors.New("the disk is away")
	change := func(err error) Change {
		return Change{
			Method: "m", Request: []byte("r"),
			Do: func(*Workspace, func([]byte) error) ([]byte, error) { done++; return []byte("answer"), err },
			Failure: func(err error) []byte {
				if errors.Is(err, passing) {
					return nil
				}
				return []byte(err.Error())
			},
		}
	}
	if _, err := n.Mutate(testCall("a"), change(passing)); !errors.Is(err, passing) {
		t.Fatalf("%v", err)
	}
	if _, err := n.Mutate(testCall("a"), change(errors.New("no match"))); err == nil || done != 2 {
		t.Fatalf("%v, done %d times", err, done)
	}
	var before *FailedBeforeError
	if _, err := n.Mutate(testCall("a"), change(nil)); !errors.As(err, &before) || string(before.Failure) != "no match" || done != 2 {
		t.Errorf("when it has become possible: %v, done %d times", err, done)
	}
	if _, err := n.Cancel(t.Context(), testCall("c")); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Mutate(testCall("c"), change(nil)); !errors.Is(err, ErrCancelled) || done != 2 {
		t.Errorf("a change of a cancelled call: %v, done %d times", err, done)
	}
}

// A crash of the machine can leave an answer empty that says that nothing took effect. One of
// which something is left, but not all, may have said anything.
func TestADamagedAnswerIsMadeAgainOnlyIfNothingTookEffect(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	done := 0
	change := Change{
		Method: "m", Request: []byte("r"),
		Do:      func(*Workspace, func([]byte) error) ([]byte, error) { done++; return nil, errors.New("no match") },
		Failure: func(err error) []byte { return []byte(err.Error()) },
	}
	place := func(id string) string { return filepath.Join(n.o.Dir, "t", "s", "mutations", "m", id) }
	for id, c := range map[string]struct {
		size int64
		made int
	}{"empty": {0, 2}, "torn": {10, 1}} {
		done = 0
		if _, err := n.Mutate(testCall(id), change); err == nil {
			t.Fatal("it did not fail")
		}
		if err := os.Truncate(place(id), c.size); err != nil {
			t.Fatal(err)
		}
		_, err := n.Mutate(testCall(id), change)
		if done != c.made || errors.Is(err, ErrOutcomeUnknown) != (c.made == 1) {
			t.Errorf("%s: made %d times, %v", id, done, err)
		}
	}
}

func TestCommandsInFoldersWhoseNamesAreNotTextAreToldApart(t *testing.T) {
	a, b := Spec{Argv: []string{"x"}, Dir: "d\xfe"}, Spec{Argv: []string{"x"}, Dir: "d\xff"}
	if bytes.Equal(a.digest(), b.digest()) {
		t.Error("they are the same")
	}
}

func TestWhoActsForAnOperationNeedsNoEpoch(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	finish(t, n, "a")
	newer := testCall("a")
	newer.Epoch = 9
	if _, err := n.Find(newer); err != nil {
		t.Fatal(err)
	}
	c := testCall("a")
	if _, err := n.Find(c); !errors.Is(err, ErrStaleEpoch) {
		t.Fatalf("an older epoch: %v", err)
	}
	c.Operation = true
	if _, err := n.Find(c); err != nil {
		t.Errorf("for an operation: %v", err)
	}
	if err := n.Acknowledge(c); err != nil {
		t.Errorf("for an operation: %v", err)
	}
	if _, err := n.Cancel(t.Context(), c); err != nil {
		t.Errorf("for an operation: %v", err)
	}
}

func TestOldResultsAreDropped(t *testing.T) {
	now := time.Now()
	o := options(t, &fake{})
	o.Now = func() time.Time { return now }
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	count := func() int {
		all, err := n.List(Key{"t", "s"})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for i := range 3 {
		now = now.Add(time.Second)
		finish(t, n, fmt.Sprint("c", i))
	}
	n.tidy()
	if all, _ := n.List(Key{"t", "s"}); len(all) != 2 || all[0].ID() != "c1" {
		t.Errorf("%d results are kept", len(all))
	}
	now = now.Add(30 * time.Minute)
	n.tidy() // the session is idle, and forgotten
	if len(n.sessions.open) != 0 || count() != 2 {
		t.Errorf("%d sessions in memory", len(n.sessions.open))
	}
	now = now.Add(time.Hour)
	n.tidy()
	if count() != 0 {
		t.Error("results of two hours ago are kept")
	}
}

func TestASeedThatFailsMakesNoWorkspace(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	if _, err := n.Ensure(testCall("x"), Want{}, func(*Workspace) error { return errors.New("bad seed") }); err == nil {
		t.Error("it was made")
	}
	if _, _, err := n.View(Key{"t", "s"}, 0); !errors.Is(err, ErrNoWorkspace) {
		t.Errorf("%v", err)
	}
}

func TestSlotsAreGivenOnce(t *testing.T) {
	t.Parallel()
	s := newSlots(Owners{Base: 1000, Count: 2}, nil, nil)
	if err := s.claim(1); err != nil {
		t.Fatal(err)
	}
	if slot, err := s.acquire(); err != nil || slot != 0 {
		t.Errorf("%d, %v", slot, err)
	}
	if _, err := s.acquire(); !errors.Is(err, ErrIsolation) {
		t.Errorf("%v", err)
	}
	s.free(1)
	if slot, err := s.acquire(); err != nil || s.owner(slot) != (Owner{1001, 1001}) {
		t.Errorf("%d, %v", slot, err)
	}
	if err := s.claim(2); err == nil {
		t.Error("a slot beyond the pool was accepted")
	}
}
