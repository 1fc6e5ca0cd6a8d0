package bubblewrap

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// monitorSlack is how late the monitor of the runtime in a sandbox's init may wake up, in nanoseconds. init has one
// goroutine: there is nothing to monitor.
const monitorSlack = 20_000_000

// spawner runs functions, forks above all, on one operating system thread that
// lives as long as it does. The kernel's death signal, by which nothing outlives
// this service, is sent when the *thread* that forked ends, and Go ends threads as
// it likes. The thread may also have a mount namespace of its own, see stage.
type spawner struct {
	jobs chan func()
	done chan struct{}
	once sync.Once
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread may not be used for anything else
	// All of init's threads but the first have it from here. Their monitor would wake up
	// every 0.1 ms else while a command runs, and take time from it. A kernel that does not
	// know how is only slower.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, monitorSlack, 0, 0, 0)
	for f := range s.jobs {
		f()
	}
}

// do runs f on the thread. It must not be called after close.
func (s *spawner) do(f func() error) error {
	answer := make(chan error, 1)
	s.jobs <- func() { answer <- f() }
	return <-answer
}

// close ends the thread, and with it whatever still runs.
func (s *spawner) close() {
	s.once.Do(func() { close(s.jobs) })
	<-s.done
}
