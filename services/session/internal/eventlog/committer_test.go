package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gated is a store whose commits wait at a gate, so that a test decides what
// gathers meanwhile.
type gated struct {
	gate    chan struct{}
	mu      sync.Mutex
	commits [][]store.Write
	fail    func(store.Write) error
	failAll error
}

func (g *gated) Commit(ctx context.Context, ws []store.Write) ([]error, error) {
	select {
	case <-g.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commits = append(g.commits, slices.Clone(ws))
	errs := make([]error, len(ws))
	for i, w := range ws {
		if g.fail != nil {
			errs[i] = g.fail(w)
		}
	}
	return errs, g.failAll
}

type fixture struct {
	*gated
	committer *Committer
	mu        sync.Mutex
	published map[string][]*sessionv1.Event
	stop      func()
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{gated: &gated{gate: make(chan struct{}, 1000)}, published: map[string][]*sessionv1.Event{}}
	f.committer = New(f.gated, func(k store.Key, events []*sessionv1.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.published[k.Session] = append(f.published[k.Session], events...)
	}, time.Minute)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.committer.Run(ctx) }()
	f.stop = func() {
		cancel()
		close(f.gate)
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	return f
}

func (f *fixture) open(session string) *Log {
	return f.committer.Open(store.Lease{Key: store.Key{Tenant: "t", Session: session}, Epoch: 1}, nil)
}

func delta(block int32, text string) *sessionv1.Event {
	return &sessionv1.Event{Turn: "x", Step: 1, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: block, Text: text}}}
}

func events(es ...*sessionv1.Event) store.Write { return store.Write{Events: es} }

// describe prints ranges and texts: "1-3:abc 4-4:d".
func describe(es []*sessionv1.Event) string {
	var parts []string
	for _, e := range es {
		parts = append(parts, fmt.Sprintf("%d-%d:%s", e.FirstSeq, e.Seq, e.GetTextDelta().GetText()))
	}
	return strings.Join(parts, " ")
}

func TestDeltasMergeWhileTheyWaitAndTheRangesTile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		l := f.open("s")
		for i, text := range []string{"a", "b", "c"} {
			if err := l.Append(t.Context(), events(delta(0, text))); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				synctest.Wait() // the committer has taken the first one and waits at the gate
			}
		}
		if err := l.Append(t.Context(), events(delta(1, "d"))); err != nil {
			t.Fatal(err)
		}
		f.gate <- struct{}{}
		f.gate <- struct{}{}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := describe(f.published["s"]), "1-1:a 2-3:bc 4-4:d"; got != want {
			t.Errorf("published %q, want %q", got, want)
		}
		if got := f.commits[1][0].LastSeq; got != 1 {
			t.Errorf("the second commit continues after %d, want 1", got)
		}
		f.stop()
	})
}

func TestNothingIsPublishedBeforeItIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		l := f.open("s")
		if err := l.Append(t.Context(), events(delta(0, "a"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.mu.Lock()
		if n := len(f.published["s"]); n != 0 {
			t.Errorf("%d events were published before the commit", n)
		}
		f.mu.Unlock()
		f.gate <- struct{}{}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := describe(f.published["s"]); got != "1-1:a" {
			t.Errorf("published %q", got)
		}
		f.stop()
	})
}

func TestASessionThatLostItsLeaseFailsAloneAndForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.fail = func(w store.Write) error {
			if w.Session == "lost" {
				return store.ErrStaleEpoch
			}
			return nil
		}
		lost, kept := f.open("lost"), f.open("kept")
		for range 10 {
			f.gate <- struct{}{}
		}
		if err := lost.Commit(t.Context(), events(delta(0, "a"))); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("commit of the lost session: %v, want ErrStaleEpoch", err)
		}
		if err := kept.Commit(t.Context(), events(delta(0, "b"))); err != nil {
			t.Errorf("commit of the other session: %v", err)
		}
		if err := lost.Append(t.Context(), events(delta(0, "c"))); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("a later append: %v, want ErrStaleEpoch", err)
		}
		if len(f.published["lost"]) != 0 {
			t.Error("events of a lost session were published")
		}
		f.stop()
	})
}

func TestAFailedCommitFailsEverySessionInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.failAll = store.ErrUnavailable
		l := f.open("s")
		f.gate <- struct{}{}
		if err := l.Commit(t.Context(), events(delta(0, "a"))); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		f.stop()
	})
}

func TestAppendBlocksWhenTooMuchWaitsUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		l := f.open("s")
		big := strings.Repeat("x", maxWaitingBytes+1)
		if err := l.Append(t.Context(), events(delta(0, big))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Append(ctx, events(delta(0, "a"))) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Append returned %v although too much waits", err)
		default:
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		f.stop()
	})
}

func TestAfterTheEndWhatWaitsIsWrittenAndTheRestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		l := f.open("s")
		if err := l.Append(t.Context(), events(delta(0, "a"))); err != nil {
			t.Fatal(err)
		}
		f.stop()
		if got := describe(f.published["s"]); got != "1-1:a" {
			t.Errorf("published %q, want what was appended before the end", got)
		}
		if err := f.open("t").Append(t.Context(), events(delta(0, "b"))); !errors.Is(err, ErrClosed) {
			t.Errorf("append after the end: %v, want ErrClosed", err)
		}
	})
}

func TestMergeKeepsTheOrderOfWaitingAndNoLongerWaiting(t *testing.T) {
	wait := func(id string) []store.PendingCall { return []store.PendingCall{{CallID: id}} }
	var w store.Write
	merge(&w, store.Write{Wait: wait("a")})
	merge(&w, store.Write{Waited: []string{"a"}})
	merge(&w, store.Write{Wait: wait("b")})
	if len(w.Wait) != 1 || w.Wait[0].CallID != "b" || !slices.Equal(w.Waited, []string{"a"}) {
		t.Errorf("got Wait %v and Waited %v, want only b to wait", w.Wait, w.Waited)
	}
}

func TestACommitThatHangsFailsAndHoldsUpNobodyForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		hung, later := f.open("hung"), f.open("later")
		begun := time.Now()
		if err := hung.Commit(t.Context(), events(delta(0, "a"))); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("the commit that hung ended with %v", err)
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		f.gate <- struct{}{}
		if err := later.Commit(t.Context(), events(delta(0, "b"))); err != nil {
			t.Errorf("the commit after it: %v", err)
		}
		f.stop()
	})
}

func TestALogThatFailedWritesNothingThatCameLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.failAll = errors.New("the connection broke")
		l := f.open("s")
		if err := l.Append(t.Context(), events(delta(0, "lost"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the commit that will fail is under way
		if err := l.Append(t.Context(), store.Write{StepCommitted: true}); err != nil {
			t.Fatal(err)
		}
		f.gate <- struct{}{}
		f.gate <- struct{}{}
		synctest.Wait()
		if len(f.commits) != 1 {
			t.Errorf("%d commits, want the one that failed and none that rests on it", len(f.commits))
		}
		f.stop()
	})
}

func TestALogIsInACommitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{gated: &gated{gate: make(chan struct{}, 1)}}
		f.committer = New(f.gated, func(store.Key, []*sessionv1.Event) {}, time.Minute)
		l, other := f.open("s"), f.open("other")
		for _, x := range []*Log{l, other} {
			if err := x.Append(t.Context(), events(delta(0, "a"))); err != nil {
				t.Fatal(err)
			}
		}
		// What comes between two steps of gathering.
		taken := f.committer.dequeue()
		taken.takeBatch()
		if err := taken.Append(t.Context(), events(delta(0, "b"))); err != nil {
			t.Fatal(err)
		}
		logs, _ := f.committer.gather()
		if slices.Contains(logs, taken) {
			t.Error("the log's second write would be in the commit of its first, which it continues")
		}
	})
}
