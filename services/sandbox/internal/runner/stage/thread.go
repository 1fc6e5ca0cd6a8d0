package stage

import (
	"errors"
	"fmt"
	"os"
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
	lost error // it is where it must not be; only the thread looks at it
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
	t.jobs <- func() {
		if t.lost != nil {
			answer <- t.lost
			return
		}
		answer <- f()
	}
	return <-answer
}

// Within runs f in the mount namespace of a process, of which it takes a descriptor. It is called
// on the thread, which has a mount namespace of its own: others may not see what it does there. A
// thread that does not find back, for which the kernel has to be out of memory, does nothing more.
func (t *Thread) Within(pidfd int, f func() error) error {
	own, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/proc/thread-self/ns/mnt", Err: err}
	}
	defer func() { _ = unix.Close(own) }()
	if err := unix.Setns(pidfd, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mount namespace of a process: %w", err)
	}
	err = f()
	if back := unix.Setns(own, unix.CLONE_NEWNS); back != nil {
		t.lost = fmt.Errorf("cannot leave the mount namespace of a process, restart the service: %w", back)
	}
	return errors.Join(err, t.lost)
}

// Close ends the thread, and with it whatever still runs.
func (t *Thread) Close() {
	t.once.Do(func() { close(t.jobs) })
	<-t.done
}
