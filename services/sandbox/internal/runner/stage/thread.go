package stage

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Thread runs functions, forks above all, on one operating system thread that
// lives as long as it does. The kernel's death signal, by which nothing outlives
// this service, is sent when the *thread* that forked ends, and Go ends threads as
// it likes. The thread may also have a mount namespace of its own, see Stage.
type Thread struct {
	jobs chan func()
	done chan struct{}
	once sync.Once
}

// NewThread starts one. What it forks inherits how late its pauses may end, the timer
// slack of prctl(2); zero is the usual one.
func NewThread(slack time.Duration) *Thread {
	t := &Thread{jobs: make(chan func()), done: make(chan struct{})}
	go t.run(slack)
	return t
}

func (t *Thread) run(slack time.Duration) {
	defer close(t.done)
	runtime.LockOSThread() // never unlocked: the thread may not be used for anything else
	// A kernel that does not know how is only slower.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack.Nanoseconds()), 0, 0, 0)
	for f := range t.jobs {
		f()
	}
}

// Do runs f on the thread. It must not be called after Close.
func (t *Thread) Do(f func() error) error {
	answer := make(chan error, 1)
	t.jobs <- func() { answer <- f() }
	return <-answer
}

// Close ends the thread, and with it whatever still runs.
func (t *Thread) Close() {
	t.once.Do(func() { close(t.jobs) })
	<-t.done
}
