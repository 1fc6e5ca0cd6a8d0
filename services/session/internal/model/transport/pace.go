package transport

import (
	"runtime"
	"sync/atomic"
	"time"
)

// reading is the pace of all streams of this process.
var reading = pace{most: readsOfCPU * runtime.GOMAXPROCS(0)}

// pace bounds how often all streams together are read, so that under load one
// pass through the log and to the followers carries several tokens. A stream that
// was not read for its interval is read at once: few streams, slow ones and first
// tokens never wait.
type pace struct {
	streams atomic.Int64
	most    int // reads a second
}

const (
	// readsOfCPU is how many reads a second a CPU is used for, at most.
	readsOfCPU = 10_000
	// longestPause bounds the pause of a stream, shortestPause is worth a timer.
	longestPause  = 50 * time.Millisecond
	shortestPause = 2 * time.Millisecond
)

// pause returns how long a stream waits that was last read at some time.
func (p *pace) pause(last time.Time) time.Duration {
	interval := min(longestPause, time.Duration(p.streams.Load())*time.Second/time.Duration(p.most))
	if interval < shortestPause {
		return 0
	}
	return interval - time.Since(last)
}
