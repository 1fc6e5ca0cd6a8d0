package rootfs

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Thread runs functions, mostly forks, on one operating system thread that lives as long as the Thread. The
// kernel sends the death signal when the *thread* that forked ends, and Go ends threads at any time. The
// thread may also have its own mount namespace, see Stage.
type Thread struct {
	jobs chan func()
	done chan struct{}
	once sync.Once
}

// NewThread starts a thread. Its children inherit the timer slack of prctl(2); zero means the default.
func NewThread(slack time.Duration) *Thread {
	t := &Thread{jobs: make(chan func()), done: make(chan struct{})}
	go t.run(slack)
	return t
}

func (t *Thread) run(slack time.Duration) {
	defer close(t.done)
	runtime.LockOSThread() // never unlocked: the thread may not be used for anything else
	// A kernel without it is only slower.
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

// Close ends the thread, and with it its running children.
func (t *Thread) Close() {
	t.once.Do(func() { close(t.jobs) })
	<-t.done
}
