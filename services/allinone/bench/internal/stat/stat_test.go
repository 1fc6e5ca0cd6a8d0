package stat

import (
	"testing"
	"time"
)

func TestPercentilesAreTimesThatWereMeasured(t *testing.T) {
	var times Times
	for i := range 101 {
		times = append(times, time.Duration(100-i)*time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 50 * time.Millisecond, 0.99: 99 * time.Millisecond, 1: 100 * time.Millisecond} {
		if got := times.At(q); got != want {
			t.Errorf("at %v: %v, want %v", q, got, want)
		}
	}
	if got := (Times{}).At(0.5); got != 0 {
		t.Errorf("without any: %v", got)
	}
}
