package box

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// patient notes which commands waited for something before they ran.
type patient struct {
	fake

	waited []bool
}

func (p *patient) Start(ctx context.Context, c Command) (Process, error) {
	before := c.Before
	c.Before = func() func() error {
		done := before()
		p.waited = append(p.waited, done != nil)
		return done
	}
	return p.fake.Start(ctx, c)
}

// ask starts a command and waits for its end.
func ask(t *testing.T, n *Node, id string, first bool) (o Outcome, attached bool) {
	t.Helper()
	e, attached, err := n.Start(t.Context(), testCall(id), 0, Spec{Argv: []string{"x"}, First: first})
	if err != nil {
		t.Fatal(err)
	}
	<-e.done
	return *e.Outcome(), attached
}

func TestAStartThatIsVouchedForDoesNotWaitForTheDisk(t *testing.T) {
	r := &patient{}
	o := options(t, r)
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	ask(t, n, "a", true)
	ask(t, n, "b", false)
	n.boot = "" // who cannot tell one start of the machine from another takes nobody's word
	ask(t, n, "c", true)
	if len(r.waited) != 3 || r.waited[0] || !r.waited[1] || !r.waited[2] {
		t.Errorf("waited: %v", r.waited)
	}
	all, err := readJournal(o.Dir)
	if err != nil || len(all) != 6 || all[0].CallID != "a" || all[0].End != nil {
		t.Errorf("the journal has %+v, %v", all, err)
	}
}

// crashed is a node after a crash of the machine that forgot all that was not synced.
func crashed(t *testing.T, n *Node, boot string) *Node {
	t.Helper()
	execs := filepath.Join(n.o.Dir, "t", "s", "execs")
	err := errors.Join(n.Close(), os.RemoveAll(execs), os.Mkdir(execs, 0o700), os.Remove(journalPath(n.o.Dir, 0)), os.Remove(journalPath(n.o.Dir, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return restarted(t, n, boot)
}

// restarted is a node after a restart of the service alone.
func restarted(t *testing.T, n *Node, boot string) *Node {
	t.Helper()
	if err := n.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	n = openNode(t, n.o)
	n.boot = boot
	return n
}

func TestWhatTheMachineForgotIsLost(t *testing.T) {
	r := &fake{}
	o := options(t, r)
	now := time.Now()
	o.Now = func() time.Time { return now }
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	ask(t, n, "forgotten", true)
	n = crashed(t, n, "second")
	lost := func(when, id string) {
		t.Helper()
		starts := r.starts
		if got, attached := ask(t, n, id, false); got.Reason != Lost || !attached || r.starts != starts {
			t.Errorf("%s, %s: %+v, attached: %v, %d more starts", when, id, got, attached, r.starts-starts)
		}
	}
	lost("after the crash", "forgotten")
	if got, _ := ask(t, n, "new", true); got.Reason != Exited {
		t.Errorf("one that is asked for the first time: %+v", got)
	}
	if e, err := n.Find(testCall("sought")); err != nil || e.Outcome().Reason != Lost {
		t.Errorf("one that somebody attaches to: %v", err)
	}
	if got, err := n.Cancel(t.Context(), testCall("cancelled")); err != nil || got == nil || got.Reason != Lost {
		t.Errorf("one that is cancelled: %+v, %v", got, err)
	}
	if _, _, err := n.Start(t.Context(), testCall("cancelled"), 0, Spec{Argv: []string{"x"}}); !errors.Is(err, ErrCancelled) {
		t.Errorf("one that was cancelled: %v", err)
	}
	n = restarted(t, n, "second")
	lost("after a restart", "forgotten")
	lost("after a restart", "another")
	if err := n.Acknowledge(testCall("another")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.Start(t.Context(), testCall("another"), 0, Spec{Argv: []string{"x"}}); !errors.Is(err, ErrAcknowledged) {
		t.Errorf("one that was acknowledged: %v", err)
	}
	n = restarted(t, n, "third")
	lost("after a third start of the machine", "late")
	now = now.Add(o.KeepFor + time.Second)
	if got, _ := ask(t, n, "later", false); got.Reason != Exited {
		t.Errorf("when nothing of then is remembered any more: %+v", got)
	}
}

func TestNothingIsDoubtedWhereAllStartsAreSynced(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	finish(t, n, "a")
	n = crashed(t, n, "second")
	if got, attached := ask(t, n, "b", false); got.Reason != Exited || attached {
		t.Errorf("%+v, attached: %v", got, attached)
	}
	if _, err := n.Find(testCall("c")); !errors.Is(err, ErrNoExec) {
		t.Errorf("found: %v", err)
	}
}

// A crash of the service forgets no start, whoever asked for it.
func TestTheServiceForgetsNoStart(t *testing.T) {
	r := &fake{}
	n := openNode(t, options(t, r))
	boot := n.boot
	ensure(t, n, Key{"t", "s"})
	ask(t, n, "a", true)
	raw, err := os.ReadFile(journalPath(n.o.Dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(n.o.Dir, "t", "s", "execs", "a")), os.WriteFile(journalPath(n.o.Dir, 0), raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	n = restarted(t, n, boot)
	if got, attached := ask(t, n, "a", false); got.Reason != Exited || !attached || r.starts != 1 {
		t.Errorf("%+v, attached: %v, %d starts", got, attached, r.starts)
	}
	if got, attached := ask(t, n, "b", false); got.Reason != Exited || attached {
		t.Errorf("one that was never asked for: %+v, attached: %v", got, attached)
	}
}
