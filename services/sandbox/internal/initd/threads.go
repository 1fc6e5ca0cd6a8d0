package main

import (
	"runtime"
	"sync"
)

// Threads that the runtime may need beside main's, its monitor and the one that makes
// threads: for the goroutine that reaps, the one that hears signals, each of those that run,
// and one to take over from any of them.
const moreThreads = 3

// makeThreads has the runtime make the threads that it may ever need, while there is
// room for them: it ends the process when it cannot have one, and a command may use up
// the processes that the sandbox is allowed. Threads are not given back.
func makeThreads(n int) {
	var made, ended sync.WaitGroup
	done := make(chan struct{})
	made.Add(n)
	for range n {
		ended.Go(func() {
			runtime.LockOSThread() // each has one of its own
			made.Done()
			<-done
			runtime.UnlockOSThread()
		})
	}
	made.Wait()
	close(done)
	ended.Wait()
}
