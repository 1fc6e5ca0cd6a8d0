package box

import (
	"context"
	"errors"
	"testing"
)

// A seal waits for a change that is under way, and whoever asked for it gives it up and lifts it.
func TestASealThatWasGivenUpDoesNotComeLate(t *testing.T) {
	n := openNode(t, options(t, &fake{}))
	ensure(t, n, Key{"t", "s"})
	begun, goOn := make(chan struct{}), make(chan struct{})
	changed, sealed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := n.Mutate(testCall("change"), 0, Change{Method: "m", Do: func(*Workspace, func([]byte) error) ([]byte, error) {
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
	if _, err := n.Mutate(testCall("next"), 0, Change{Method: "m", Do: func(*Workspace, func([]byte) error) ([]byte, error) { return nil, nil }}); err != nil {
		t.Errorf("the next change: %v", err)
	}
}
