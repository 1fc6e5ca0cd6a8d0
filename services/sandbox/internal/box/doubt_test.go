package box

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	e, attached, err := n.Start(t.Context(), testCall(id), Spec{Argv: []string{"x"}, First: first})
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
	for _, x := range []struct {
		id    string
		first bool
		waits bool
	}{
		{"a", true, true}, // for it is not on the disk yet that there are such
		{"b", true, false},
		{"c", false, true},
		{"d", true, false},
	} {
		ask(t, n, x.id, x.first)
		n.execs.Wait()
		if got := r.waited[len(r.waited)-1]; got != x.waits {
			t.Errorf("%s waits: %v", x.id, got)
		}
	}
	n.life = life{} // who cannot tell one start of the machine from another takes nobody's word
	if ask(t, n, "e", true); !r.waited[len(r.waited)-1] {
		t.Error("a word is taken that cannot be checked")
	}
	all, err := readJournal(o.Dir)
	if err != nil || len(all) != 10 || all[2].CallID != "b" || all[2].End != nil {
		t.Errorf("the journal has %+v, %v", all, err)
	}
}

// Where the disk has no room to say that starts are not synced, they are.
func TestWithoutRoomEachStartIsSynced(t *testing.T) {
	r := &patient{}
	n := openNode(t, options(t, r))
	ensure(t, n, Key{"t", "s"})
	if err := os.Mkdir(filepath.Join(n.o.Dir, "t", "s", metaFile+".new"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if got, _ := ask(t, n, id, true); got.Reason != Exited {
			t.Errorf("%+v", got)
		}
		n.execs.Wait()
	}
	if slices.Contains(r.waited, false) {
		t.Errorf("waited: %v", r.waited)
	}
}

// powerCut is a node after a crash of the machine that forgot all that was not synced.
func powerCut(t *testing.T, n *Node, life string) *Node {
	t.Helper()
	n.execs.Wait()
	execs := filepath.Join(n.o.Dir, "t", "s", "execs")
	err := errors.Join(n.Close(), os.RemoveAll(execs), os.Mkdir(execs, 0o700), os.Remove(journalPath(n.o.Dir, 0)), os.Remove(journalPath(n.o.Dir, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return restarted(t, n, life)
}

// restarted is a node after a restart of the service alone.
func restarted(t *testing.T, n *Node, life string) *Node {
	t.Helper()
	n.execs.Wait()
	if err := n.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	n = openNode(t, n.o)
	n.life.ID = life
	return n
}

// vouching is a node with a workspace in which starts are not synced.
func vouching(t *testing.T, o Options) *Node {
	t.Helper()
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	ask(t, n, "made-known", true)
	n.execs.Wait()
	return n
}

func TestWhatTheMachineForgotIsLost(t *testing.T) {
	r := &fake{}
	o := options(t, r)
	now := time.Now()
	o.Now = func() time.Time { return now }
	n := vouching(t, o)
	ask(t, n, "forgotten", true)
	n = powerCut(t, n, "second")
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
	if e, err := n.Find(testCall("forgotten")); err != nil || e.Outcome().Reason != Lost {
		t.Errorf("one that somebody attaches to: %v", err)
	}
	if _, err := n.Find(testCall("no id")); err == nil {
		t.Error("what is no id is lost")
	}
	if all, err := n.List(Key{"t", "s"}); err != nil || len(all) != 1 {
		t.Errorf("%d are listed, %v", len(all), err)
	}
	if got, err := n.Cancel(t.Context(), testCall("cancelled")); err != nil || got == nil || got.Reason != Lost {
		t.Errorf("one that is cancelled: %+v, %v", got, err)
	}
	if _, _, err := n.Start(t.Context(), testCall("cancelled"), Spec{Argv: []string{"x"}}); !errors.Is(err, ErrCancelled) {
		t.Errorf("one that was cancelled: %v", err)
	}
	if err := n.Acknowledge(testCall("forgotten")); err != nil {
		t.Error(err)
	}
	lost("acknowledged", "forgotten")
	n = restarted(t, n, "second")
	lost("after a restart", "forgotten")
	n = restarted(t, n, "third")
	lost("in a third life", "forgotten")
	now = now.Add(20 * time.Minute)
	n.tidy() // nobody has used the session for a while: it is read again
	if len(n.open) != 0 {
		t.Fatal("not evicted")
	}
	now = now.Add(2 * o.KeepFor)
	lost("much later", "forgotten")
}

// Whoever changes what is remembered of a workspace keeps in it that starts were not synced.
func TestNothingTakesTheDoubtAway(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, n *Node){
		"nothing": func(*testing.T, *Node) {},
		"another epoch": func(t *testing.T, n *Node) {
			c := testCall("x")
			c.Epoch = 2
			if _, err := n.Find(c); !errors.Is(err, ErrNoExec) {
				t.Error(err)
			}
		},
		"other wishes": func(t *testing.T, n *Node) {
			w := Want{Environment: &Environment{Variables: map[string]string{"A": "b"}}}
			if _, err := n.Ensure(testCall("ensure"), w, func(*Workspace) error { return nil }); err != nil {
				t.Error(err)
			}
		},
		"a seal": func(t *testing.T, n *Node) {
			if err := n.Seal(t.Context(), testCall("seal")); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := vouching(t, options(t, &fake{}))
			change(t, n)
			n = powerCut(t, n, "second")
			c := testCall("forgotten")
			c.Epoch = 3
			if e, attached, err := n.Start(t.Context(), c, Spec{Argv: []string{"x"}}); err != nil || !attached || e.Outcome().Reason != Lost {
				t.Errorf("attached: %v, %v", attached, err)
			}
			var m meta
			if err := read(filepath.Join(n.o.Dir, "t", "s", metaFile), &m); err != nil || !m.Doubted || m.Unsynced != "" {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

func TestNothingIsDoubtedWhereAllStartsAreSynced(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	finish(t, n, "a")
	n = powerCut(t, n, "second")
	if got, attached := ask(t, n, "b", false); got.Reason != Exited || attached {
		t.Errorf("%+v, attached: %v", got, attached)
	}
	if _, err := n.Find(testCall("c")); !errors.Is(err, ErrNoExec) {
		t.Errorf("found: %v", err)
	}
}

// A full disk after a crash keeps nobody from making room.
func TestWithoutRoomADoubtIsKeptInMemory(t *testing.T) {
	n := powerCut(t, vouching(t, options(t, &fake{})), "second")
	if err := os.Mkdir(filepath.Join(n.o.Dir, "t", "s", metaFile+".new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, _ := ask(t, n, "new", true); got.Reason != Exited {
		t.Errorf("%+v", got)
	}
	if got, _ := ask(t, n, "forgotten", false); got.Reason != Lost {
		t.Errorf("%+v", got)
	}
	if err := n.Delete(Key{"t", "s"}, 0); err != nil {
		t.Error(err)
	}
}

// A change of a file has ended when its cancellation has, in doubt as well.
func TestInDoubtACancellationWaitsForAChange(t *testing.T) {
	n := powerCut(t, vouching(t, options(t, &fake{})), "second")
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

// A crash of the service forgets no start, whoever asked for it.
func TestTheServiceForgetsNoStart(t *testing.T) {
	r := &fake{}
	n := vouching(t, options(t, r))
	id := n.life.ID
	ask(t, n, "ended", true)
	ask(t, n, "started", true)
	n.execs.Wait()
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
	n = restarted(t, n, id)
	starts := r.starts
	for call, want := range map[string]Reason{"ended": Exited, "started": Lost} {
		if got, attached := ask(t, n, call, false); got.Reason != want || !attached || r.starts != starts {
			t.Errorf("%s: %+v, attached: %v", call, got, attached)
		}
	}
	if got, attached := ask(t, n, "b", false); got.Reason != Exited || attached {
		t.Errorf("one that was never asked for: %+v, attached: %v", got, attached)
	}
}

// What was begun after a change is not known where starts are not synced.
func TestAfterACrashNoChangeIsTheLastForSure(t *testing.T) {
	r := newRecovering(t, Undone)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	for _, id := range []string{"before", "last"} {
		if _, err := r.mutate(n, id); err != nil {
			t.Fatal(err)
		}
	}
	now := n.life
	n.life.ID = "before the crash"
	if err := n.vouch(Key{"t", "s"}); err != nil {
		t.Fatal(err)
	}
	n.life = now
	n = r.crash(t, n, "last")
	if _, err := n.List(Key{"t", "s"}); err != nil || len(r.asked) != 1 {
		t.Fatalf("asked for %d, %v", len(r.asked), err)
	}
	for _, i := range r.asked {
		if i.Last {
			t.Errorf("%s is taken for the last", i.ID)
		}
	}
}

func TestLivesOfANode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, lifeFile)
	begin := func(boot string) *Node {
		t.Helper()
		n := &Node{o: Options{Dir: dir}}
		var err error
		if n.life, err = readLife(path, boot); err != nil {
			t.Fatal(err)
		}
		if err := n.live(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := begin("a").life.ID
	if again := begin("a").life.ID; first == "" || again != first {
		t.Errorf("after a restart of the service: %q, %q", first, again)
	}
	second := begin("b").life.ID
	if second == first {
		t.Error("after a crash of the machine")
	}
	n := begin("a")
	if n.life.ID == first || n.life.ID == second {
		t.Error("after another machine had the disk")
	}
	if err := n.endLife(); err != nil {
		t.Fatal(err)
	}
	if l, err := readLife(path, "c"); err != nil || l.ID != n.life.ID {
		t.Errorf("a service that could not begin leaves another one: %v", err)
	}
	if next := begin("c").life.ID; next != n.life.ID {
		t.Error("what was ended with all on the disk does not go on")
	}
	if next := begin("d").life.ID; next == n.life.ID {
		t.Error("it goes on after a crash that came later")
	}
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if next := begin("d").life.ID; next == n.life.ID || next == "" {
		t.Error("what is damaged goes on")
	}
	if n := begin(""); n.life.ID != "" || n.trusting() {
		t.Error("starts of the machine cannot be told apart")
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := readLife(path, "d"); err == nil {
		t.Error("what cannot be read is over")
	}
}

// Where there is no room to say which life it is, the service goes on with it, and takes nobody's word.
func TestWithoutRoomALifeGoesOn(t *testing.T) {
	o := options(t, &patient{})
	n := vouching(t, o)
	l := n.life
	if err := errors.Join(n.Close(), os.Mkdir(filepath.Join(o.Dir, lifeFile+".new"), 0o700)); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, o)
	if n.life.ID != l.ID || n.trusting() {
		t.Errorf("%+v goes on as %+v", l, n.life)
	}
	if got, attached := ask(t, n, "unknown", false); got.Reason != Exited || attached {
		t.Errorf("%+v, attached: %v", got, attached)
	}
}

// Of what the disk has not kept the kernel tells once.
func TestAfterAFailedSyncNothingStarts(t *testing.T) {
	o := options(t, &fake{})
	n := vouching(t, o)
	n.journal.mu.Lock()
	_ = n.journal.fail(unix.EIO)
	n.journal.mu.Unlock()
	for _, first := range []bool{true, false} {
		if _, _, err := n.Start(t.Context(), testCall("a"), Spec{Argv: []string{"x"}, First: first}); !errors.Is(err, unix.EIO) {
			t.Errorf("first: %v: %v", first, err)
		}
	}
	if err := n.Close(); !errors.Is(err, unix.EIO) {
		t.Errorf("closed: %v", err)
	}
	if l, err := readLife(filepath.Join(o.Dir, lifeFile), "another boot"); err != nil || l.ID == n.life.ID {
		t.Errorf("the life goes on: %v", err)
	}
}

// What is left to do after a command's end takes no place of the node's.
func TestToRememberAWordTakesNoPlace(t *testing.T) {
	o := options(t, &filling{})
	o.MaxExecs = 1
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	e, _, err := n.Start(t.Context(), testCall("a"), Spec{Argv: []string{"x"}, First: true})
	if err != nil {
		t.Fatal(err)
	}
	s, leave, err := n.enter(Key{"t", "s"})
	if err != nil {
		t.Fatal(err)
	}
	s.workspace.mu.Lock() // it cannot be remembered
	e.stop(Outcome{Reason: Cancelled})
	<-e.done
	active := func() int { n.mu.Lock(); defer n.mu.Unlock(); return n.active }
	for end := time.Now().Add(5 * time.Second); active() > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	if active() > 0 {
		t.Error("the place is taken")
	}
	s.workspace.mu.Unlock()
	leave()
}
