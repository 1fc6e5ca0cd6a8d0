package box

import (
	"testing"
	"testing/synctest"
	"time"
)

// A look at a workspace with many files may take longer than a command may.
func TestATimeLimitDoesNotWaitForALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &endless{end: make(chan struct{})}
		e := newExec(nil, "", record{})
		e.process, e.limits.Timeout = p, watchPause+time.Millisecond
		began := time.Now()
		e.attend(p, func() { <-p.end })
		if took := time.Since(began); took != e.limits.Timeout || e.stopped == nil || e.stopped.Reason != TimedOut {
			t.Errorf("after %v it was ended for %+v", took, e.stopped)
		}
	})
}
