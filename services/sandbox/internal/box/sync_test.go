package box

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ask starts a command and waits for its end.
func ask(t *testing.T, n *Node, id string) (o Outcome, attached bool) {
	t.Helper()
	e, attached, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	<-e.done
	return *e.Outcome(), attached
}

// A change of a file has ended when its cancellation has.
func TestACancellationWaitsForAChange(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	began, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = n.Mutate(testCall("change"), Change{Method: "write", Do: func(*Workspace, func([]byte) error) ([]byte, error) {
			close(began)
			<-goOn
			return nil, nil
		}})
	}()
	<-began
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		if _, err := n.Cancel(t.Context(), testCall("change")); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-cancelled:
		t.Error("it is cancelled, and still being made")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-ended
	<-cancelled
}

// A crash forgets no start, though the journal alone has it.
func TestACrashForgetsNoStart(t *testing.T) {
	r := &fake{}
	n := openNode(t, options(t, r))
	ensure(t, n, Key{"t", "s"})
	ask(t, n, "ended")
	ask(t, n, "started")
	n.capacity.wait()
	all, err := readJournal(n.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	for _, e := range all {
		if e.CallID == "started" && e.End != nil {
			continue // it was killed before
		}
		packet, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, packet...)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	execs := filepath.Join(n.o.Dir, "t", "s", "execs")
	if err := errors.Join(os.RemoveAll(execs), os.Mkdir(execs, 0o700), os.WriteFile(journalPath(n.o.Dir, 0), raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, n.o)
	starts := r.starts
	for call, want := range map[string]Reason{"ended": Exited, "started": Lost} {
		if got, attached := ask(t, n, call); got.Reason != want || !attached || r.starts != starts {
			t.Errorf("%s: %+v, attached: %v", call, got, attached)
		}
	}
	if got, attached := ask(t, n, "b"); got.Reason != Exited || attached {
		t.Errorf("one that was never asked for: %+v, attached: %v", got, attached)
	}
}

// Of what the disk has not kept the kernel tells once.
func TestAfterAFailedSyncNothingStarts(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	n.journal.mu.Lock()
	_ = n.journal.fail(unix.EIO)
	n.journal.mu.Unlock()
	if _, _, err := n.Start(t.Context(), testCall("a"), Spec{Argv: []string{"x"}}); !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
	if err := n.Close(); !errors.Is(err, unix.EIO) {
		t.Errorf("closed: %v", err)
	}
}
