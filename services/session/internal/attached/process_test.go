package attached

import (
	"log/slog"
	"testing"
	"testing/synctest"

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
