package box

import (
	"fmt"
	"time"
)

// weigh measures from time to time how much memory a command's processes use together, if nothing else
// limits that. It calls over if that is too much, and stops when the command has ended. It runs beside all
// other looks, because a measurement of much memory takes long. done waits for the last look, which is
// short once nothing runs any more.
func weigh(p Process, l Limits, over func(why string)) (done func()) {
	look := p.Weigh()
	if look == nil {
		return func() {}
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		pause := time.NewTimer(watchPause)
		defer pause.Stop()
		for {
			select {
			case <-p.Ended():
				return
			case <-pause.C:
			}
			before := time.Now()
			if bytes := look(); bytes > l.MemoryBytes {
				over(fmt.Sprintf("its processes had %d bytes of memory together, and may have %d. Work on less at a time", bytes, l.MemoryBytes))
			}
			pause.Reset(max(watchPause, 4*time.Since(before)))
		}
	}()
	return func() { <-finished }
}
