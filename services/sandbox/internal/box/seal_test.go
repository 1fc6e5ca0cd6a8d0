package box

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// A seal waits for a running change, and its caller cancels and lifts it.
func TestASealThatWasGivenUpDoesNotComeLate(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	begun, goOn := make(chan struct{}), make(chan struct{})
	changed, sealed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := n.Mutate(testCall("change"), Change{Method: "m", Do: func(*Workspace, func([]byte) error) ([]byte, error) {
			close(begun)
			<-goOn
			return nil, nil
		}})
		changed <- err
	}()
	<-begun
	ctx, giveUp := context.WithCancel(t.Context())
	go func() { sealed <- n.Seal(ctx, testCall("seal")) }()
	giveUp()
	if err := n.Unseal(t.Context(), testCall("unseal")); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := errors.Join(<-changed, <-sealed); !errors.Is(err, context.Canceled) {
		t.Errorf("the change and the seal: %v", err)
	}
	if _, err := n.Mutate(testCall("next"), Change{Method: "m", Do: func(*Workspace, func([]byte) error) ([]byte, error) { return nil, nil }}); err != nil {
		t.Errorf("the next change: %v", err)
	}
}

// A seal waits for a running change, and is lifted before the node knows that its caller
// is gone.
func TestASealThatWasLiftedWhileItWaitedDoesNotCome(t *testing.T) {
	f := &fake{}
	n := openNode(t, options(t, f))
	ensure(t, n, Key{"t", "s"})
	begun, goOn := make(chan struct{}), make(chan struct{})
	changed, sealed := make(chan error, 1), make(chan error, 1)
	change := Change{Method: "m", Do: func(*Workspace, func([]byte) error) ([]byte, error) { return nil, nil }}
	long := change
	long.Do = func(*Workspace, func([]byte) error) ([]byte, error) {
		close(begun)
		<-goOn
		return nil, nil
	}
	go func() {
		_, err := n.Mutate(testCall("change"), long)
		changed <- err
	}()
	<-begun
	go func() { sealed <- n.Seal(t.Context(), testCall("seal")) }()
	task := func() error {
		_, err := n.RunInside(t.Context(), testCall("task"), Task{Argv: []string{"git"}})
		return err
	}
	for !errors.Is(task(), ErrSealed) { // it has come in
		runtime.Gosched()
	}
	if err := n.Unseal(t.Context(), testCall("unseal")); err != nil {
		t.Fatal(err)
	}
	if err := task(); err != nil {
		t.Errorf("a task before the seal has heard of it: %v", err)
	}
	close(goOn)
	if err := errors.Join(<-changed, <-sealed); !errors.Is(err, ErrCancelled) {
		t.Errorf("the change and the seal: %v", err)
	}
	if _, err := n.Mutate(testCall("next"), change); err != nil {
		t.Errorf("the next change: %v", err)
	}
	if err := n.Seal(t.Context(), testCall("again")); err != nil {
		t.Errorf("the next seal: %v", err)
	}
}
