package box

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLatenessTellsEverybodyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lateness
		for range 3 { // and again when nobody has waited for a while
			var took []time.Duration
			done := make(chan time.Duration)
			for i := range 20 {
				go func() {
					<-time.After(time.Duration(i) * ring / 7)
					begun := time.Now()
					<-l.passed()
					done <- time.Since(begun)
				}()
			}
			for range 20 {
				took = append(took, <-done)
			}
			for _, d := range took {
				if d < ring || d > 2*ring {
					t.Errorf("somebody was told after %v", d)
				}
			}
			<-time.After(5 * ring)
			l.mu.Lock()
			if l.timer != nil {
				t.Error("it goes on though nobody waits")
			}
			l.mu.Unlock()
		}
	})
}
