package box

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// mover is a fake that remembers what was made ahead of time and taken over.
type mover struct {
	fake
	mu            sync.Mutex
	warmed, moved []string
}

func (m *mover) Warm(_ context.Context, s Sandbox) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.warmed = append(m.warmed, s.Workspace)
	return nil
}

func (m *mover) Move(from string, to Sandbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moved = append(m.moved, from, to.Workspace)
}

// seen is what it remembers.
func (m *mover) seen() (warmed, moved []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.warmed), slices.Clone(m.moved)
}

func TestANewSessionTakesASpareOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mover{}
		o := options(t, m)
		o.Spares = 2
		n := openNode(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		synctest.Wait()
		warmed, _ := m.seen()
		if len(warmed) != 2 {
			t.Fatalf("%d are ready", len(warmed))
		}
		ensure(t, n, Key{"t", "s"})
		workspace := filepath.Join(o.Dir, "t", "s", "workspace")
		if _, moved := m.seen(); !slices.Equal(moved, []string{warmed[0], workspace}) {
			t.Errorf("taken over: %v", moved)
		}
		if st, err := os.Stat(workspace); err != nil || !st.IsDir() {
			t.Error(err)
		}
		synctest.Wait()
		if warmed, _ := m.seen(); len(warmed) != 3 {
			t.Errorf("afterwards %d were made", len(warmed))
		}
		if o := finish(t, n, "a"); o.Reason != Exited {
			t.Errorf("%+v", o)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		n, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = n.Close() }()
		if left, err := os.ReadDir(filepath.Join(o.Dir, spareFolder)); err == nil {
			t.Errorf("%d folders of spares are left", len(left))
		}
	})
}

// slowMaker makes sandboxes ahead as slowly as the test wants.
type slowMaker struct {
	fake
	begun, proceed chan string
}

func (m *slowMaker) Warm(_ context.Context, s Sandbox) error {
	m.begun <- s.Workspace
	<-m.proceed
	return nil
}

// TestABurstOfSessionsMakesOneSandboxAheadAtATime has many sessions begin while one's
// sandbox is being made.
func TestABurstOfSessionsMakesOneSandboxAheadAtATime(t *testing.T) {
	m := &slowMaker{begun: make(chan string, 100), proceed: make(chan string)}
	n := openNode(t, options(t, m))
	call := func(i int) Call {
		c := Call{Key: Key{"t", fmt.Sprint("s", i)}, Epoch: 1, ID: "warm"}
		ensure(t, n, c.Key)
		return c
	}
	n.Warm(t.Context(), call(0))
	first := <-m.begun
	for i := 1; i < 50; i++ {
		n.Warm(t.Context(), call(i))
	}
	if len(m.begun) != 0 {
		t.Errorf("besides %s, %d are being made", first, len(m.begun))
	}
	m.proceed <- ""
	n.Warm(t.Context(), Call{Key: Key{"t", "nowhere"}, Epoch: 1}) // it has no workspace, and blocks no caller
	last := call(50)
	for len(m.begun) == 0 {
		n.Warm(t.Context(), last) // the first may not have come back yet
		runtime.Gosched()
	}
	m.proceed <- ""
}

// slowWarmer says when a sandbox is being made ahead, and when one is ended.
type slowWarmer struct {
	slowMaker
	stopped chan struct{}
}

func (w *slowWarmer) Stop(string) { w.stopped <- struct{}{} }

// TestASandboxThatIsBeingMadeAheadIsEndedWithTheOthers has the workspace be deleted meanwhile: one that
// comes after that would be of nothing.
func TestASandboxThatIsBeingMadeAheadIsEndedWithTheOthers(t *testing.T) {
	k := Key{"t", "s"}
	m := &slowWarmer{slowMaker{begun: make(chan string, 1), proceed: make(chan string)}, make(chan struct{}, 1)}
	n := openNode(t, options(t, m))
	ensure(t, n, k)
	n.Warm(t.Context(), testCall("warm"))
	<-m.begun
	ended := make(chan error, 1)
	go func() { ended <- n.Delete(k, 0) }()
	select {
	case <-m.stopped:
		t.Error("the others are ended, and it is still being made")
	case <-time.After(50 * time.Millisecond):
	}
	m.proceed <- ""
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNoSandboxIsMadeAheadInASealedWorkspace(t *testing.T) {
	m := &mover{}
	n := openNode(t, options(t, m))
	ensure(t, n, Key{"t", "s"})
	if err := n.Seal(t.Context(), testCall("seal")); err != nil {
		t.Fatal(err)
	}
	n.Warm(t.Context(), testCall("warm"))
	if err := n.Close(); err != nil { // it waits
		t.Fatal(err)
	}
	if warmed, _ := m.seen(); len(warmed) > 0 {
		t.Errorf("it is there: %v", warmed)
	}
}
