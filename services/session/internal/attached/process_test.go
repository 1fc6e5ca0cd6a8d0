package attached

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// TestATurnThatLeavesSetsItsProcessFree while the last message about its step waits behind many pieces.
func TestATurnThatLeavesSetsItsProcessFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{over: make(chan struct{}), steps: map[int64]*asked{}}
		a := p.expect(1)
		for range said {
			if err := p.take(1, false, &sessionv1.AttachRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		taken := make(chan error, 1)
		go func() { taken <- p.take(1, true, &sessionv1.AttachRequest{}) }()
		synctest.Wait()
		p.forget(1)
		synctest.Wait()
		select {
		case err := <-taken:
			if err != nil || len(a.in) != said {
				t.Errorf("%d messages, %v", len(a.in), err)
			}
		default:
			t.Error("the process is read no more")
			close(p.over)
		}
		if len(p.steps) != 0 {
			t.Errorf("the process still has %d steps", len(p.steps))
		}
	})
}

// TestStepsOfTwoServersDiffer so that what a process still says for one server fits no step of the next.
func TestStepsOfTwoServersDiffer(t *testing.T) {
	one, two := New(Defaults(), nil, "one", slog.New(slog.DiscardHandler)), New(Defaults(), nil, "two", slog.New(slog.DiscardHandler))
	if one.steps == two.steps {
		t.Errorf("both begin at %d", one.steps)
	}
}

// Messages about steps that a process does not have are passed over, as some cross the end of a turn. A flood of them
// ends the stream; a message about a step that it has begins the count anew.
func TestAFloodOfStrayMessagesEndsTheStream(t *testing.T) {
	p := &process{over: make(chan struct{}), steps: map[int64]*asked{}}
	stray := &sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Delta{Delta: &sessionv1.RuntimeDelta{Step: 9}}}
	flood := func() {
		t.Helper()
		for n := range maxStray {
			if err := p.take(9, false, stray); err != nil {
				t.Fatalf("stray message %d: %v", n+1, err)
			}
		}
	}
	flood()
	a := p.expect(1)
	if err := p.take(1, true, stray); err != nil {
		t.Fatal(err)
	}
	<-a.in
	flood()
	if err := p.take(9, false, stray); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "steps that the process does not have, such as 9") {
		t.Errorf("the flood: %v", err)
	}
}
