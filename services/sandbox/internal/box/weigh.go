package box

import (
	"fmt"
	"time"
)

// weigh looks now and then at what a command's processes have in memory together, where nothing else bounds that, until it
// has ended; it says when that is too much. It does so beside everything else that is looked at, for it takes long
// where there is much of it. done waits for the last look, which is short once nothing runs any more.
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
